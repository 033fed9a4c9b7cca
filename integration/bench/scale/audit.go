package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// A span is the time that a request was in the API server.
type span struct{ from, to time.Time }

// readAudit reads an audit log. It leaves out watches, which wait and do not work.
func readAudit(file string) ([]span, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var all []span
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var event struct {
			Verb                     string    `json:"verb"`
			RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
			StageTimestamp           time.Time `json:"stageTimestamp"`
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, fmt.Errorf("decode %s: %w", file, err)
		}
		if event.Verb != "watch" {
			all = append(all, span{event.RequestReceivedTimestamp, event.StageTimestamp})
		}
	}
	return all, lines.Err()
}

// mostAtOnce is the largest number of spans that have a time in common. One that ends when
// another begins has none in common with it.
func mostAtOnce(spans []span) int {
	type edge struct {
		at   time.Time
		step int
	}
	var edges []edge
	for _, s := range spans {
		edges = append(edges, edge{s.from, 1}, edge{s.to, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(a.at.Compare(b.at), a.step-b.step) })
	most, now := 0, 0
	for _, e := range edges {
		now += e.step
		most = max(most, now)
	}
	return most
}
