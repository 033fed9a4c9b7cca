package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/ip-reaper/ip-reaper/reaper/dump"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
)

// A recorded is an API server that answers from files, and keeps ConfigMaps. Its clock stands still, but for the
// sleeps of runs.
type recorded struct {
	*testing.T
	files      http.RoundTripper
	maps       map[string]corev1.ConfigMap
	now        time.Time
	kubeconfig string
}

// recordedState serves a golden state.
func recordedState(t *testing.T, dir string) *recorded {
	t.Helper()
	policy, alive := "testdata/golden/policy.yaml", alivePods(t, dir)
	files := []string{joined(t, alive)}
	for _, file := range glob(t, filepath.Join(dir, "*")) {
		switch {
		case strings.HasPrefix(filepath.Base(file), "policy."):
			policy = file
		case !slices.Contains(alive, file):
			files = append(files, joined(t, []string{file}))
		}
	}
	read, err := dump.Read(t.Context(), nil, files)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(policy)
	if err != nil {
		t.Fatal(err)
	}
	s := &recorded{T: t, files: read.Server, now: time.Now().Truncate(time.Second)}
	s.maps = map[string]corev1.ConfigMap{state.PolicyName: {ObjectMeta: metav1.ObjectMeta{Name: state.PolicyName, ResourceVersion: "1"}, Data: map[string]string{"policy.yaml": string(text)}}}
	s.kubeconfig = leadTo(t, s)[1]
	return s
}

func (s *recorded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parent, name := path.Base(path.Dir(r.URL.Path)), path.Base(r.URL.Path)
	notFound := status(http.StatusNotFound, metav1.StatusReasonNotFound, "none", parent, name)
	switch {
	case r.Method != http.MethodGet:
		s.save(w, r)
		return
	case parent == "configmaps":
		document, _ := json.Marshal(s.maps[name])
		if s.maps[name].Name == "" {
			document = notFound
		}
		answer(w, document)
		return
	case path.Dir(r.URL.Path) == "/api/v1/namespaces":
		answer(w, []byte(`{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "`+name+`"}}`))
		return
	case r.URL.Query().Has("labelSelector"):
		answer(w, []byte(`{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": []}`))
		return
	case name == "configmaps", name == "leases":
		answer(w, []byte(noneGiven))
		return
	case parent == "customresourcedefinitions":
		resource, group, _ := strings.Cut(name, ".")
		r.URL.Path = path.Join("/apis", group, "v1", resource)
	}
	found, err := s.files.RoundTrip(r)
	switch {
	case err != nil && parent == "clusterinformations":
		answer(w, []byte(`{"spec": {"datastoreReady": true}}`))
		return
	case err != nil:
		answer(w, notFound)
		return
	}
	defer func() { _ = found.Body.Close() }()
	document, _ := io.ReadAll(found.Body)
	if parent == "customresourcedefinitions" && found.StatusCode == http.StatusOK {
		document = []byte(`{"metadata": {"name": "x"}, "spec": {"versions": [{"name": "v1", "served": true, "storage": true}]}}`)
	}
	answer(w, document)
}

// save stores a ConfigMap.
func (s *recorded) save(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	saved, is := object.(*corev1.ConfigMap)
	if err != nil || !is {
		s.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		return
	}
	saved.ResourceVersion = strconv.Itoa(len(body))
	s.maps[saved.Name] = *saved
	document, _ := json.Marshal(saved)
	answer(w, document)
}

// run runs a command line, and returns what it prints.
func (s *recorded) run(words ...string) string {
	var out, errs bytes.Buffer
	w := streams(&out, &errs)
	w.now = func() time.Time { return s.now }
	w.sleep = func(_ context.Context, d time.Duration) error {
		s.now = s.now.Add(d)
		return nil
	}
	code := run(s.Context(), w, words[1:])
	if code != exitDone && code != exitLimit {
		s.Errorf("%v: exit code %d\n%s", words, code, errs.String())
	}
	return out.String()
}

// again runs a command line on the state as it was at a time, with the ConfigMaps of then, and returns the plan.
func (s *recorded) again(then time.Time, kept map[string]corev1.ConfigMap, words ...string) planned {
	s.now, s.maps = then, maps.Clone(kept)
	return planOf(s.T, s.run(append(slices.Clone(words), "-o=json")...))
}

// A planned is what a report plans, and what waits: the address of each allocation.
type planned struct {
	Planned, Waits map[string]string
	Waiting        int // addresses
}

func planOf(t *testing.T, report string) planned {
	t.Helper()
	var r struct {
		Leaked  *struct{ Waiting int }
		Entries []struct{ Backend, Pool, Key, IP, Verdict, Outcome string }
	}
	if err := json.Unmarshal([]byte(report), &r); err != nil || r.Leaked == nil {
		t.Fatalf("%v in\n%s", err, report)
	}
	p, held := planned{make(map[string]string), make(map[string]string), r.Leaked.Waiting}, make(map[string]bool)
	for _, e := range r.Entries {
		switch key := strings.Join([]string{e.Backend, e.Pool, e.Key}, " "); {
		case e.Outcome == "planned":
			p.Planned[key] = e.IP
		case e.Verdict == "suspected":
			p.Waits[key] = e.IP
		case e.Verdict == "held":
			held[e.IP] = true
		}
	}
	maps.DeleteFunc(p.Waits, func(_, ip string) bool { return held[ip] })
	return p
}

// flagSets are the flags of runs whose printed commands are typed. IP, POOL and BACKEND stand for those of something
// that leaked.
var flagSets = [][]string{
	{},
	{"--grace-period=1h"},
	{"--grace-period=60s", "--min-age=0s", "--wait=2m"},
	{"--grace-period=1h", "--min-age=1m", "--wait=15m", "--ip=IP"},
	{"--grace-period=1h", "--wait=2h", "--release-restored"},
	{"--grace-period=1h", "--remember"},
	{"--grace-period=60s", "--wait=2m", "--remember"},
	{"--pool=POOL", "--backend=BACKEND", "--release-restored"},
	{"--grace-period=1h", "--exclude-namespace=kube-system", "--unsafe-ignore-limit=maxFraction,maxReleases"},
	{"--grace-period=1h", "--policy=FILE"},
}

// The commands that a report prints, typed as dry runs on the same state, plan what their lines promise: neither more nor
// less.
func TestPrintedCommandsPlanWhatTheirLinesPromise(t *testing.T) {
	typed := make(map[string]int)
	for _, dir := range goldenStates(t) {
		if strings.Contains(dir, "etcd") || exists(filepath.Join(dir, "etcd.json")) {
			continue // it needs an etcd
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			s := recordedState(t, dir)
			words := s.leaked()
			for _, flags := range flagSets {
				s.typePrinted(typed, strings.Fields(words.Replace(strings.Join(flags, " "))))
			}
		})
	}
	for _, line := range []string{"Release", "Release again", "Remember", "Look", "Ask", "Addresses"} {
		if typed[line] == 0 {
			t.Errorf("no report has a line %q: %v", line, typed)
		}
	}
}

// leaked returns what IP, POOL, BACKEND and FILE stand for.
func (s *recorded) leaked() *strings.Replacer {
	var r struct {
		Entries []struct {
			Backend, Pool, IP string
			Leaked            bool
		}
	}
	if err := json.Unmarshal([]byte(s.run("ip-reaper", "run", "--context=here", "--kubeconfig", s.kubeconfig, "-o=json")), &r); err != nil {
		s.Fatal(err)
	}
	file := written(s.T, "policy.yaml", []byte(s.maps[state.PolicyName].Data["policy.yaml"]))
	for _, e := range r.Entries {
		if e.Leaked && e.IP != "" {
			return strings.NewReplacer("IP", e.IP, "POOL", e.Pool, "BACKEND", e.Backend, "FILE", file)
		}
	}
	return strings.NewReplacer("--ip=IP", "", "--pool=POOL", "", "--backend=BACKEND", "", "FILE", file)
}

// printedLine matches what to do next, and the command.
var printedLine = regexp.MustCompile(`(?m)^(\S.*)\n  \$ (.*)$`)

// typePrinted runs with flags, and then what the report prints.
func (s *recorded) typePrinted(typed map[string]int, flags []string) {
	began, stored := s.now, maps.Clone(s.maps)
	first := slices.Concat([]string{"ip-reaper", "run", "--context=here", "--kubeconfig", s.kubeconfig}, flags, []string{"--dry-run"})
	report := s.run(first...)
	then, kept := s.now, maps.Clone(s.maps)
	promised := s.again(began, stored, first...)
	for _, printed := range printedLine.FindAllStringSubmatch(report, -1) {
		says, words := printed[1], strings.Fields(printed[2])
		s.hasFlags(words, flags)
		kind, _, _ := strings.Cut(says, " ")
		typed[kind]++
		switch kind {
		case "Release":
			words[len(words)-1] = "--dry-run"
			got, waits := s.again(then, kept, words...), strings.Contains(says, "again")
			if waits { // and then more may be due
				typed["Release again"]++
				maps.DeleteFunc(got.Planned, func(key, _ string) bool {
					_, is := promised.Planned[key]
					return !is
				})
			}
			if diff := cmp.Diff(promised.Planned, got.Planned); diff != "" {
				s.Errorf("%v: %s: %s (-promised +planned)\n%s", flags, says, printed[2], diff)
			}
			if took := s.now.Sub(then); waits != (took >= time.Minute) {
				s.Errorf("%v: %s: it took %v", flags, says, took)
			}
		case "Remember":
			s.again(then, kept, words...)
			later := s.again(then.Add(25*time.Hour), s.maps, words...)
			for key := range promised.Waits {
				if _, is := later.Planned[key]; !is && then.Equal(began) { // otherwise the run has learned more
					s.Errorf("%v: %s: a day later, %s is not due: %s", flags, says, key, printed[2])
				}
			}
		case "Look":
			got, n, of := s.again(then, kept, words...), 0, 0
			released := make(map[string]bool)
			for key, ip := range got.Planned {
				if _, waited := promised.Waits[key]; waited && ip != "" {
					released[ip] = true
				}
			}
			_, err := fmt.Sscanf(says[strings.Index(says, "for "):], "for %d of %d", &n, &of)
			if err != nil || len(released) != n || of != promised.Waiting {
				s.Errorf("%v: %s: it plans %d of %d: %s", flags, says, len(released), promised.Waiting, printed[2])
			}
		case "Ask", "Addresses":
			if typed[printed[2]]++; typed[printed[2]] > 1 {
				continue
			}
			s.now, s.maps = then, maps.Clone(kept)
			if got := s.run(words...); !strings.Contains(got, strings.TrimPrefix(words[len(words)-1], "node/")) {
				s.Errorf("%s says\n%s", printed[2], got)
			}
		default:
			s.Errorf("nothing is known of the line %q", says)
		}
	}
	s.now, s.maps = began, stored
}

// hasFlags checks that a printed run has the flags of the run that printed it, and none twice.
func (s *recorded) hasFlags(words, flags []string) {
	of := func(name string) (n int) {
		for _, word := range words {
			if word == name || strings.HasPrefix(word, name+"=") {
				n++
			}
		}
		return n
	}
	for _, flag := range slices.Concat(flags, words) {
		name, _, _ := strings.Cut(flag, "=")
		switch n := of(name); {
		case !strings.HasPrefix(name, "--") || words[1] != "run" || name == "--unsafe-ignore-limit" && n == 2:
		case n > 1, n == 0 && name != "--wait" && name != "--remember":
			s.Errorf("%v: %d times %s in: %v", flags, n, name, words)
		}
	}
}
