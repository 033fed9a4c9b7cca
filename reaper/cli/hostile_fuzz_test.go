package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

// unprintable are the characters that are not letters, marks, numbers, punctuation,
// symbols, spaces or line breaks, and some that have no width.
var unprintable = regexp.MustCompile(`[^\pL\pM\pN\pP\pS \n]|[\x{34f}\x{3164}\x{fe00}-\x{fe0f}]`)

// line is what a line of stderr begins with.
var line = regexp.MustCompile(`^(ip-reaper: |hint: |\{"time":"|warning: |failed: |equal failures |(pushing|writing) the (metrics|termination message) failed: |the lock was |client-go: |(run|judged|done|node) \(|(release|restore)(: | \()|waiting until |the next grace period ends at |the ledger does not have |cannot tell (whether other namespaces have a state|which (rights the account has|cluster this is)): |listed \d|found \d|judged \d|releasing in whereabouts: \d|settled \d|done$)`)

// No text of a dump, a journal, an object, a server's message or a proxy's page reaches
// stdout, stderr or the termination message as a control character or as a line of its
// own, in any format.
func FuzzPrograms(f *testing.F) {
	for i, text := range []string{
		"", "default/web-0", "\x1b[31mred\x1b]0;title\x07", "a\nip-reaper: done\r\nhint: type this\n", "\x7f\u0085\u009b\u2028",
		"\u202egpj.\u2066x\u2069\u200b\ufeff", "\xff\xed\xa0\x80", "\U000e0041\U0010ffff", "a\ufe0f\u3164b", "<b>|`x`|[y](http://z)", `"\u001b`, "---\nkind: Pod\n",
		strings.Repeat("long ", 999),
	} {
		f.Add(text, byte(i))
		f.Add(text, byte(130+i))
	}
	f.Fuzz(printEverything)
}

// printEverything runs the commands that print text from elsewhere.
func printEverything(t *testing.T, text string, choice byte) {
	formats := print.Formats()
	h := hostile{T: t, text: text, format: formats[int(choice)%len(formats)], terminal: choice >= 128}
	h.dir = t.TempDir()
	args := append(leadTo(t, h), "--output", h.format, "-v")
	pools, pods := h.file("pools.json", h.pools()), h.file("pods.json", h.pods())
	h.run("inspect", pools, h.file("junk", text), pods, "--all", "-o", h.format)
	full := h
	full.format = print.LookFormats()[int(choice)%len(print.LookFormats())]
	full.run("pools", "--from", pools+","+h.file("blocks.json", h.blocks())+","+pods, "--all", "--top", print.Tops()[int(choice)%len(print.Tops())], "-o", full.format)
	waiting := h.file("waiting.json", h.waiting()) + "," + h.file("events.json", h.events())
	for _, command := range [][]string{{"pools"}, {"explain", "default/waits"}, {"explain", "10.1.0.0/24"}} {
		full.run(append(command, "--from", pools+","+waiting, "-o", full.format)...)
	}
	h.run("inspect", pools, h.file("blocks.json", h.blocks()), pods, "-o", h.format)
	h.run("inspect", filepath.Join(h.dir, strings.Map(inName, text)), "-o", text)
	restore := append(args[:4:4], "restore", "-o", h.format)
	h.run(append(restore, "--journal", h.file("journal.json", h.journal("20260301-120000-ABCDEF")))...)
	h.run(append(restore, "--journal", h.file("other.json", h.journal(text)))...)
	h.run(append(restore, "--dry-run", "--journal", h.file("damaged.json", h.journal("run-1", text)))...)
	h.run(append(restore, "--journal", h.file("junk.json", text))...)
	h.run(append(restore, "--run", text)...)
	h.run(append(args[:4:4], "-o", h.format, "--state-namespace", "elsewhere")...) // there, the policy is hostile too
	h.run("policy", "validate", h.file("policy.yaml", h.policy()))
	gateway := httptest.NewServer(h)
	defer gateway.Close()
	h.run(append(args, "--push-url", gateway.URL, "--termination-log", h.file("termination.json", ""), "--unsafe-ignore-limit=maxFraction,noPods",
		"--grace-period=0s", "--min-age=0s")...)
	said, err := os.ReadFile(filepath.Join(h.dir, "termination.json"))
	if err != nil || !json.Valid(said) {
		t.Fatalf("termination message %q, %v", said, err)
	}
	h.wantPrintable("termination message", string(said))
}

// A hostile is a place where every text is one that a fuzzer chose.
type hostile struct {
	*testing.T
	text     string
	format   string
	terminal bool
	dir      string
}

// inName keeps a character from leading to another folder.
func inName(c rune) rune {
	if c == '/' {
		return '_'
	}
	return c
}

// run runs the program and looks at all that it prints.
func (h hostile) run(args ...string) {
	h.Helper()
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithCancel(h.Context())
	defer cancel()
	w := streams(&stdout, &stderr)
	w.stdin, w.terminal = strings.NewReader(h.text), h.terminal
	run(ctx, w, args)
	h.wantPrintable(fmt.Sprintf("stdout of %q", args), stdout.String())
	h.wantPrintable(fmt.Sprintf("stderr of %q", args), stderr.String())
	for one := range strings.Lines(stderr.String()) {
		one = strings.TrimSuffix(one, "\n")
		if !line.MatchString(one) || strings.HasPrefix(one, "{") && !json.Valid([]byte(one)) {
			h.Fatalf("%q printed to stderr the line %q", args, one)
		}
	}
	var value any
	switch _, bad := stdout.Len(), ""; {
	case stdout.Len() == 0 || args[0] == "policy":
	case h.format == "json" && json.Unmarshal(stdout.Bytes(), &value) != nil:
		bad = "JSON"
		fallthrough
	case h.format == "yaml" && yaml.Unmarshal(stdout.Bytes(), &value) != nil:
		h.Fatalf("%q printed no %s%s: %s", args, bad, h.format, stdout.Bytes())
	}
}

// wantPrintable fails the test if an output has a control character.
func (h hostile) wantPrintable(where, output string) {
	h.Helper()
	if found := unprintable.FindString(output); found != "" || !utf8.ValidString(output) {
		h.Fatalf("%s has %q, or no UTF-8:\n%q", where, found, output)
	}
}

// file writes a file.
func (h hostile) file(name, content string) string {
	h.Helper()
	name = filepath.Join(h.dir, name)
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		h.Fatal(err)
	}
	return name
}

// object is a JSON object.
type object map[string]any

// list returns a list of objects.
func (h hostile) list(version, kind string, items ...object) string {
	h.Helper()
	text, err := json.Marshal(object{"kind": kind, "apiVersion": version, "metadata": object{"resourceVersion": "9"}, "items": append([]object{}, items...)})
	if err != nil {
		h.Fatal(err)
	}
	return string(text)
}

func (h hostile) pools() string {
	entry := object{"id": h.text, "ifname": h.text, "podref": h.text}
	return h.list("whereabouts.cni.cncf.io/v1alpha1", "IPPoolList",
		object{"metadata": object{"namespace": "kube-system", "name": "10.1.0.0-24"}, "spec": object{"range": "10.1.0.0/24", "allocations": object{
			"1": entry, h.text: entry, "2": object{"id": "c2", "ifname": "net1", "podref": "default/gone"}, "3": object{"id": "c3", "podref": "default/" + h.text}}}},
		object{"metadata": object{"namespace": h.text, "name": h.text}, "spec": object{"range": h.text}},
		object{"kind": h.text, "apiVersion": h.text, "metadata": object{"name": h.text}})
}

func (h hostile) blocks() string {
	return h.list("crd.projectcalico.org/v1", "IPAMBlockList", object{"metadata": object{"name": "10-2-0-0-30"}, "spec": object{
		"cidr": "10.2.0.0/30", "affinity": "host:" + h.text, "allocations": []any{0, nil, nil, nil}, "unallocated": []int{1, 2, 3}, "deleted": false,
		"attributes": []object{{"handle_id": h.text, "secondary": object{"namespace": h.text, "node": h.text, "pod": h.text, h.text: h.text}}},
	}})
}

func (h hostile) pods() string {
	return h.list("v1", "PodList", object{
		"metadata": object{"namespace": h.text, "name": h.text, "uid": h.text, "annotations": object{"k8s.v1.cni.cncf.io/network-status": h.text}},
		"spec":     object{"nodeName": h.text}, "status": object{"phase": h.text, "podIP": "10.1.0.1"},
	})
}

// waiting returns a pod that waits for an address.
func (h hostile) waiting() string {
	return h.list("v1", "PodList", object{
		"metadata": object{"namespace": "default", "name": "waits", "uid": "u1", "annotations": object{
			"k8s.v1.cni.cncf.io/networks": h.text, "cni.projectcalico.org/ipv4pools": fmt.Sprintf("[%q]", h.text), "v1.multus-cni.io/default-network": h.text,
		}},
		"spec": object{"nodeName": "n1"}, "status": object{"phase": "Pending"},
	})
}

// events returns what events say of it.
func (h hostile) events() string {
	of := object{"kind": "Pod", "namespace": "default", "name": "waits", "uid": "u1"}
	return h.list("v1", "EventList",
		object{"metadata": object{"namespace": "default", "name": "a"}, "involvedObject": of, "reason": "FailedCreatePodSandBox", "message": h.text, "count": -1},
		object{"metadata": object{"namespace": "default", "name": "b"}, "involvedObject": of, "reason": "NoNetworkFound", "message": "range: 10.1.0.0/24 " + h.text},
		object{"metadata": object{"namespace": "default", "name": "c"}, "involvedObject": of, "reason": h.text, "message": h.text})
}

func (h hostile) policy() string {
	text, err := json.Marshal(object{"apiVersion": "ip-reaper/v1alpha1", "kind": "ReapPolicy", h.text: h.text, "gracePeriod": h.text,
		"backends": object{h.text: object{}, "calico": object{h.text: 1}}})
	if err != nil {
		h.Fatal(err)
	}
	return string(text)
}

// journal returns the history of the first run with a part of the journal of each run.
func (h hostile) journal(runs ...string) string {
	h.Helper()
	var parts []object
	for i, id := range runs {
		parts = append(parts, object{
			"kind": "ReapJournal", "version": 1, "write": i + 1, "part": 1, "parts": 1,
			"run": object{"id": id, "startedAt": "2026-03-01T12:00:00Z", "version": h.text, "cluster": h.text},
			"records": []object{{
				"backend": "whereabouts", "pool": "p" + h.text, "key": "k" + h.text, "ip": "10.1.0.7", "stored": object{"podref": h.text},
				"owner": object{"namespace": h.text, "pod": h.text, "sandbox": h.text, "interface": h.text, "node": h.text},
			}, {"backend": "b" + h.text, "pool": "p", "key": "k", "stored": h.text, "owner": object{}}},
		})
	}
	printed := object{"parts": parts}
	if len(runs) > 1 {
		printed["damage"] = []string{h.text}
	}
	text, err := json.Marshal(object{"runs": []object{{"id": runs[0], "journal": printed}}})
	if err != nil {
		h.Fatal(err)
	}
	return string(text)
}

// ServeHTTP answers in place of an API server. It lists pools and pods, and stores the lease
// and journals. It refuses everything else, as a webhook, a proxy or a Pushgateway does.
func (h hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, read := path.Base(r.URL.Path), r.Method == http.MethodGet
	lists := map[string]string{
		"ippools": h.pools(), "pods": noPods, "statefulsets": noSets, "nodes": unlessGiven["nodes"], "apis": unlessGiven["apis"],
		"network-attachment-definitions": h.list("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinitionList"),
	}
	switch {
	case read && lists[name] != "":
		answer(w, []byte(lists[name]))
	case read && strings.HasSuffix(r.URL.Path, "/ip-reaper/configmaps/"+state.PolicyName):
		answer(w, []byte(plainPolicy))
	case read && name == state.LockName:
		answer(w, status(http.StatusNotFound, metav1.StatusReasonNotFound, h.text, "leases", name))
	case read && strings.HasPrefix(name, "ip-reaper-ledger"):
		answer(w, status(http.StatusNotFound, metav1.StatusReasonNotFound, h.text, "configmaps", name))
	case r.Method == http.MethodPost && (name == "leases" || name == "configmaps"):
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		stored, _ := io.ReadAll(r.Body)
		_, _ = w.Write(stored)
	case strings.HasPrefix(r.URL.Path, "/metrics/job/"):
		http.Error(w, h.text, http.StatusBadRequest)
	case name == "overlappingrangeipreservations":
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "<html><h1>%s</h1>", h.text)
	default:
		answer(w, status(http.StatusForbidden, metav1.StatusReasonForbidden, h.text, h.text, h.text))
	}
}
