package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
)

// TestScripts runs testdata. In each script a server answers from the files in api/ (see
// fakeAPI), and the file kubeconfig leads to it through the context "here", which is the
// current one. Besides the commands of testscript there are:
//
//	exits CODE COMMAND ARG...  run the program under the name COMMAND, and compare its exit code;
//	                           with "< FILE" at the end, FILE is its standard input
//	[!] contacted              whether the server was sent anything
//	[!] wrote                  whether the server was sent more than reads, and a lease
//	json FILE                  FILE, such as stdout, is one JSON value
//	jsonlines FILE             every line of FILE is a JSON object
//	stable FILE                stdout is FILE, with words in place of servers and times
//	world                      the server has the lists of testdata/world, unless the script has others
//
// nodescript_test.go has those of the scripts about a node.
//
// The program runs in this process, one command after another, because it takes its folder and
// some variables from the process. integration/ runs the binary.
func TestScripts(t *testing.T) {
	t.Chdir(".") // and back at the end, as with the variables
	for _, variable := range ofProcess {
		t.Setenv(variable, "")
	}
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(testdata, "*.txtar"))
	var variables []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		variables = append(variables, regexp.MustCompile(envPrefix+"[A-Z_]+").FindAllString(string(text), -1)...)
	}
	testscript.RunT(inOrder{t}, testscript.Params{
		Dir: testdata,
		Setup: func(env *testscript.Env) error {
			s := &fakeAPI{dir: filepath.Join(env.WorkDir, "api")}
			server := httptest.NewServer(s)
			env.Defer(server.Close)
			env.Values[fakeAPIKey{}] = s
			env.Setenv("SERVER", server.URL)
			addRuntime(t, env)
			env.Values[variablesKey{}] = variables
			env.Values[rootKey{}] = filepath.Join(testdata, "..", "..", "..")
			env.Setenv("HOST", server.Listener.Addr().String())
			// The default exists where the tests run in a pod.
			env.Setenv("IP_REAPER_TERMINATION_LOG", filepath.Join(env.WorkDir, "no-such-file"))
			return os.WriteFile(filepath.Join(env.WorkDir, "kubeconfig"), fmt.Appendf(nil, kubeconfig, server.URL), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"onnode":    onNode,
			"world":     func(ts *testscript.TestScript, _ bool, _ []string) { world(ts, filepath.Join(testdata, "world")) },
			"stable":    stable,
			"lease":     lease,
			"sandbox":   sandbox,
			"locked":    locked,
			"contacted": func(ts *testscript.TestScript, neg bool, _ []string) { asked(ts, neg, "contacted") },
			"wrote":     func(ts *testscript.TestScript, neg bool, _ []string) { asked(ts, neg, "written to") },
			"json":      func(ts *testscript.TestScript, _ bool, args []string) { jsonValue(ts, ts.ReadFile(args[0])) },
			"jsonlines": jsonLines,
		},
	})
}

const kubeconfig = `{"apiVersion": "v1", "kind": "Config", "current-context": "here",
	"clusters": [{"name": "c", "cluster": {"server": %q}}],
	"contexts": [{"name": "here", "context": {"cluster": "c", "namespace": "reap"}}]}`

// A fakeAPI is an API server that answers from files: a list is api/<resource>.json, and
// a cluster-scoped object is api/<name>.json. If a file is a Status, the answer has its
// code. The installed policy is api/ip-reaper-policy.json, the CronJobs are api/cronjobs.json, and a list with
// a label selector is api/journals.json. The lists of nodes, of API groups, and of what other namespaces have exist
// without a file, and so does every namespace but "nowhere". The lease of the lock is free. No
// other object can be written.
type fakeAPI struct {
	dir    string
	all    atomic.Int32
	writes atomic.Int32
}

// unlessGiven are the lists that exist without a file.
var unlessGiven = map[string]string{
	"nodes":      `{"kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": []}`,
	"configmaps": noneGiven,
	"leases":     noneGiven,
	"apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "apps"}, {"name": "whereabouts.cni.cncf.io",
		"versions": [{"groupVersion": "whereabouts.cni.cncf.io/v1alpha1", "version": "v1alpha1"}]}]}`,
}

const noneGiven = `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "9"}, "items": []}`

type fakeAPIKey struct{}

func (s *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.all.Add(1)
	at := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if slices.Contains(at, "leases") && r.Method != http.MethodGet {
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		_, _ = io.Copy(w, r.Body)
		return
	}
	if path.Base(r.URL.Path) == "selfsubjectaccessreviews" { // it changes nothing
		s.review(w, r)
		return
	}
	if r.Method != http.MethodGet {
		s.writes.Add(1)
		answer(w, status(http.StatusForbidden, metav1.StatusReasonForbidden, "nothing can be written here", "", ""))
		return
	}
	if journals, err := os.ReadFile(filepath.Join(s.dir, "journals.json")); err == nil && r.URL.Query().Get("labelSelector") != "" {
		answer(w, journals)
		return
	}
	if path.Dir(r.URL.Path) == "/api/v1/namespaces" && path.Base(r.URL.Path) != "nowhere" {
		answer(w, []byte(`{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "`+path.Base(r.URL.Path)+`"}}`))
		return
	}
	document, err := os.ReadFile(filepath.Join(s.dir, path.Base(r.URL.Path)+".json"))
	if err == nil && (path.Base(path.Dir(r.URL.Path)) == "configmaps" || path.Base(r.URL.Path) == "cronjobs") {
		answer(w, document)
		return
	}
	if slices.Contains(at, "namespaces") && at[len(at)-1] != "namespaces" {
		kind, name := at[len(at)-2], at[len(at)-1]
		answer(w, status(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", kind, name), kind, name))
		return
	}
	if given, ok := unlessGiven[path.Base(r.URL.Path)]; ok && err != nil {
		document, err = []byte(given), nil
	}
	const definitions = "customresourcedefinitions"
	switch name := path.Base(r.URL.Path); {
	case err == nil:
		answer(w, document)
	case path.Base(path.Dir(r.URL.Path)) == definitions:
		answer(w, status(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", definitions, name), definitions, name))
	default:
		http.NotFound(w, r) // as the API server says where it has no such resource
	}
}

// review answers that the account may do everything except what a line of api/forbidden
// says, such as "patch ippools".
func (s *fakeAPI) review(w http.ResponseWriter, r *http.Request) {
	var asked authorizationv1.SelfSubjectAccessReview
	_ = json.NewDecoder(r.Body).Decode(&asked)
	forbidden, _ := os.ReadFile(filepath.Join(s.dir, "forbidden"))
	a := asked.Spec.ResourceAttributes
	asked.Status.Allowed = !slices.Contains(strings.Split(string(forbidden), "\n"), a.Verb+" "+a.Resource)
	document, _ := json.Marshal(asked)
	answer(w, document)
}

// answer sends a document, with its code if it is a Status.
func answer(w http.ResponseWriter, document []byte) {
	s := metav1.Status{Code: http.StatusOK}
	_ = json.Unmarshal(document, &s)
	if s.Kind != "Status" {
		s.Code = http.StatusOK
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(s.Code))
	_, _ = w.Write(document)
}

func status(code int32, reason metav1.StatusReason, message, kind, name string) []byte {
	document, _ := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: message,
		Details: &metav1.StatusDetails{Kind: kind, Name: name},
	})
	return document
}

// asked fails the script if the server was not asked, or with a ! if it was.
func asked(ts *testscript.TestScript, neg bool, what string) {
	s, ok := ts.Value(fakeAPIKey{}).(*fakeAPI)
	if !ok {
		ts.Fatalf("there is no server")
	}
	n := s.all.Load()
	if what == "written to" {
		n = s.writes.Load()
	}
	if (n > 0) == neg {
		ts.Fatalf("the server was %s %d times", what, n)
	}
}

// world adds the files of testdata/world.
func world(ts *testscript.TestScript, common string) {
	work := ts.Getenv("WORK")
	ts.Check(os.MkdirAll(filepath.Join(work, "api"), 0o755))
	ts.Check(fs.WalkDir(os.DirFS(common), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if _, err := os.Stat(filepath.Join(work, name)); err == nil {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(common, name))
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(work, name), text, 0o600)
	}))
}

// inOrder runs scripts one after another.
type inOrder struct{ *testing.T }

func (inOrder) Parallel() {}

func (inOrder) Verbose() bool { return testing.Verbose() }

func (t inOrder) Run(name string, f func(testscript.T)) {
	t.T.Run(name, func(t *testing.T) { f(inOrder{t}) })
}

// ofProcess are the variables that client-go takes from the process.
var ofProcess = []string{"KUBECONFIG", "HOME"}

// exits runs a command and compares its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	for _, variable := range ofProcess {
		ts.Check(os.Setenv(variable, ts.Getenv(variable)))
	}
	ts.Check(os.Chdir(ts.MkAbs(".")))
	var stdout, stderr bytes.Buffer
	w := streams(&stdout, &stderr)
	w.env = ts.Getenv
	w.environ = func() (all []string) {
		names, _ := ts.Value(variablesKey{}).([]string)
		for _, name := range names {
			all = append(all, name+"="+ts.Getenv(name))
		}
		return all
	}
	w.kubelets = []string{filepath.Join(ts.Getenv("WORK"), "kubelet", "pods")}
	if n := len(args); args[n-2] == "<" {
		w.stdin, args = strings.NewReader(ts.ReadFile(args[n-1])), args[:n-2]
	}
	w.kubectl, args = called(args[1:])
	got := run(context.Background(), w, args)
	_, _ = ts.Stdout().Write(stdout.Bytes())
	_, _ = ts.Stderr().Write(stderr.Bytes())
	if got != want {
		ts.Fatalf("exit code %d, want %d; stderr:\n%s", got, want, stderr.String())
	}
	if reports.Match(stdout.Bytes()) {
		root, _ := ts.Value(rootKey{}).(string)
		ts.Check(reapertest.Valid(root, stdout.Bytes()))
	}
}

// reports matches the JSON form of what has a schema.
var reports = regexp.MustCompile(`^\{\n +"apiVersion": "ip-reaper/[^\n]+\n +"kind": `)

// rootKey is that of the folder of the project.
type rootKey struct{}

// variablesKey is that of the names of the program's variables in all scripts.
type variablesKey struct{}

// stable compares stdout with a file, with words in place of addresses of servers and of times.
func stable(ts *testscript.TestScript, _ bool, args []string) {
	text := regexp.MustCompile(`http://[0-9.]+:[0-9]+`).ReplaceAllString(ts.ReadFile("stdout"), "SERVER")
	text = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`).ReplaceAllString(text, "TIME")
	if diff := cmp.Diff(ts.ReadFile(args[0]), text); diff != "" {
		ts.Fatalf("stdout (-want +got):\n%s", diff)
	}
}

func jsonValue(ts *testscript.TestScript, text string) {
	if !json.Valid([]byte(text)) {
		ts.Fatalf("not one JSON value: %s", text)
	}
}

func jsonLines(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	if text == "" {
		ts.Fatalf("no line")
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "{") {
			ts.Fatalf("not an object: %s", line)
		}
		jsonValue(ts, line)
	}
}
