package cnstest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// The files in testdata are requests, each with the real CNS's answer: the status, the header
// cns_return_code, and the JSON objects. The requests begin with ">". Messages and times are
// left out, and so is what the fake does not say about an assigned address.
//
// With AZURE_CNS_RECORD=container=http://..., the test sends the requests of container.txt
// there and writes the answers to the file.
func TestFakeAnswersAsTheRealCNS(t *testing.T) {
	for name, open := range map[string]func() *CNS{
		"container": func() *CNS {
			c := NewManaging()
			for i := range byte(4) {
				c.Add("55022629-3854-499b-7133-5e6887959f4ea", netip.AddrFrom4([4]byte{10, 241, 0, 4 + i}))
			}
			return c
		},
		"interface": func() *CNS {
			c := New()
			for i := range 4 {
				id := fmt.Sprintf("00000001-0000-4000-8000-%012x", i)
				c.Set(id, Address{State: Available, ID: id, IP: fmt.Sprintf("10.0.0.%d", 16+i), Network: "06867cf3-332d-409d-8819-ed70d2c116b0"})
			}
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name+".txt")
			recorded, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if at, ok := strings.CutPrefix(os.Getenv("AZURE_CNS_RECORD"), name+"="); ok {
				recorded = []byte(exchange(t, at, string(recorded)))
				if err := os.WriteFile(file, recorded, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			server := httptest.NewServer(open())
			defer server.Close()
			if diff := gocmp.Diff(strings.Split(string(recorded), "\n"), strings.Split(exchange(t, server.URL, string(recorded)), "\n")); diff != "" {
				t.Errorf("the answers of %s (-real +fake):\n%s", name, diff)
			}
		})
	}
}

// exchange sends the requests of a file, and returns the file with their answers.
func exchange(t *testing.T, address, file string) string {
	t.Helper()
	var out strings.Builder
	for line := range strings.Lines(file) {
		if !strings.HasPrefix(line, ">") {
			continue
		}
		out.WriteString(line)
		words := strings.SplitN(strings.TrimSpace(line), " ", 4)
		words = append(words, "")
		request, err := http.NewRequestWithContext(t.Context(), words[1], address+words[2], strings.NewReader(words[3]))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&out, response.StatusCode, response.Header.Get("Cns_return_code"))
		out.WriteString(plain(body))
		out.WriteString("\n")
	}
	return out.String()
}

// plain returns an answer without what differs from run to run, one line per JSON object.
func plain(body []byte) string {
	var out strings.Builder
	if at := bytes.IndexByte(body, '{'); at > 0 {
		out.WriteString("(text)\n")
		body = body[at:]
	}
	for objects := json.NewDecoder(bytes.NewReader(body)); ; {
		var object any
		if err := objects.Decode(&object); err != nil {
			return out.String()
		}
		data, err := json.Marshal(withoutTexts(object))
		if err != nil {
			return err.Error()
		}
		out.Write(append(data, '\n'))
	}
}

// withoutTexts replaces texts and times, and sorts lists.
func withoutTexts(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, in := range value {
			switch {
			case key == "Message" && in != "":
				value[key] = "(text)"
			case key == "LastStateTransition":
				value[key] = "(time)"
			case key == "PodIPConfig":
				return map[string]any{"IP": in.(map[string]any)["IPAddress"], "NICType": value["NICType"]} //nolint:errcheck // a panic is a failure
			default:
				value[key] = withoutTexts(in)
			}
		}
	case []any:
		for i := range value {
			value[i] = withoutTexts(value[i])
		}
		slices.SortFunc(value, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	return value
}
