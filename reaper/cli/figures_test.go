package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// figures are those of a report that people may compare.
type figures struct {
	Due, Waiting, Held int               // addresses
	Full               map[string]string // by network or pool: how full it is, and how many of its addresses leaked
}

// What the outputs say about one state is the same: they count addresses, and have one formula for
// how full a pool is.
func TestFiguresAgreeAcrossOutputs(t *testing.T) {
	for _, dir := range goldenStates(t) {
		if exists(filepath.Join(dir, "etcd.json")) {
			continue // as in the API
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var stores []string
			policy, alive := "testdata/golden/policy.yaml", alivePods(t, dir)
			for _, file := range glob(t, filepath.Join(dir, "*")) {
				if strings.HasPrefix(filepath.Base(file), "policy.") {
					policy = file
				} else if !strings.Contains(strings.Join(alive, " "), file) {
					stores = append(stores, joined(t, []string{file}))
				}
			}
			stores = append(stores, joined(t, alive))
			printed := func(command string, flags ...string) string {
				args := append([]string{command, "--policy=" + policy}, flags...)
				for _, store := range stores {
					if command == "inspect" {
						args = append(args, store)
					} else {
						args = append(args, "--from="+store)
					}
				}
				var stdout, stderr bytes.Buffer
				if run(t.Context(), streams(&stdout, &stderr), args); stdout.Len() == 0 {
					t.Fatalf("%v: %s", args, stderr.String())
				}
				return stdout.String()
			}

			want := figuresOfText(printed("inspect"), "POOL")
			pools, page := figuresOfText(printed("pools", "--all"), "NETWORK"), figuresOfPage(t, printed("inspect", "-o=html"))
			for name, full := range want.Full {
				if pools.Full[name] != full || page.Full[name] != full {
					t.Errorf("%s: %s in the report, %s in pools, %s on the page", name, full, pools.Full[name], page.Full[name])
				}
				if text := printed("explain", "pool/"+name); !strings.Contains(text, "("+strings.Fields(full)[0]+")") && !strings.Contains(text, " closed ") {
					t.Errorf("%s: %s in the report, but explain says\n%s", name, full, text)
				}
			}
			want.Full, pools.Full, page.Full = nil, nil, nil
			top := figures{}
			for _, row := range tableOf(printed("pools", "--top=nodes"), "NODE") {
				top.Due += number(row["DUE"])
				top.Waiting += number(row["WAITING"])
				top.Held += number(row["HELD"])
			}
			for name, got := range map[string]figures{"pools": pools, "the page": page, "pools --top": top} {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-report +%s):\n%s", name, name, diff)
				}
			}
		})
	}
}

var bottomLine = regexp.MustCompile(`([0-9,]+) due now.*, ([0-9,]+) waiting, ([0-9,]+) held`)

// figuresOfText reads a report or pools; the pools are in the table whose heading has the column.
func figuresOfText(text, column string) figures {
	found := figures{Full: make(map[string]string)}
	if m := bottomLine.FindStringSubmatch(text); m != nil {
		found.Due, found.Waiting, found.Held = number(m[1]), number(m[2]), number(m[3])
	}
	for _, row := range tableOf(text, column) {
		name := strings.TrimPrefix(row[column], "pool ")
		found.Full[name] = row["FULL"] + " with " + row["LEAKED"]
	}
	return found
}

func number(text string) int {
	n, _ := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	return n
}

// tableOf returns the rows of the table whose heading has the column FULL or LEAKED beside another.
func tableOf(text, column string) (rows []map[string]string) {
	var heading string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.Contains(line, "LEAKED") && strings.Contains(" "+line, " "+column+" "):
			heading = line
		case line == "":
			heading = ""
		case heading != "" && !strings.HasPrefix(line, "…") && strings.Contains(line, "  "):
			row, runes := make(map[string]string), []rune(line)
			for _, at := range regexp.MustCompile(`\S+`).FindAllStringIndex(heading, -1) {
				if at[0] < len(runes) {
					cell, _, _ := strings.Cut(string(runes[at[0]:]), "  ")
					if strings.HasPrefix(string(runes[at[0]:]), "  ") { // a pool below its network
						cell, _, _ = strings.Cut(string(runes[at[0]+2:]), "  ")
					}
					row[heading[at[0]:at[1]]] = cell
				}
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// figuresOfPage reads the data of the page as its script does.
func figuresOfPage(t *testing.T, page string) figures {
	t.Helper()
	_, data, _ := strings.Cut(page, `id="data">`)
	data, _, _ = strings.Cut(data, "</script>")
	var got struct {
		States string
		Same   map[int]int
		Report struct {
			Entries []struct{ IP string }
			Pools   []struct {
				Name        string
				Leaked      int
				FullPercent *int
				Free        *json.Number
			}
		}
	}
	if err := json.Unmarshal([]byte(data), &got); err != nil {
		t.Fatal(err)
	}
	found := figures{Full: make(map[string]string)}
	for i, e := range got.Report.Entries {
		if _, other := got.Same[i]; other || e.IP == "" {
			continue
		}
		switch got.States[i] {
		case 'd', 'f':
			found.Due++
		case 'w':
			found.Waiting++
		case 'h', 'p':
			found.Held++
		}
	}
	for _, p := range got.Report.Pools {
		full := "unknown"
		if p.FullPercent != nil {
			full = fmt.Sprintf("%d%%", *p.FullPercent)
		} else if p.Free != nil {
			full = "closed"
		}
		found.Full[p.Name] = fmt.Sprintf("%s with %d", full, p.Leaked)
	}
	return found
}
