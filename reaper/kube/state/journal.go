package state

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// Each part of a journal is stored in its own ConfigMap, which is never updated. Its name is
// made of JournalName, the run, the number of the write, and the number of the part. Journals
// are found by their labels.
const (
	JournalName  = "ip-reaper-journal"
	JournalLabel = "ip-reaper/journal" // "true"
	RunLabel     = "ip-reaper/run"     // the run's ID

	startedKey  = "ip-reaper/started-at" // for users; Prune goes by the API server's clock
	journalKey  = "journal.json.gz"
	journalPage = 50 // ConfigMaps on a page: each may have 1 MiB, and most have a few KiB
)

// takeBackTimeout limits the removal of the parts of a failed write.
const takeBackTimeout = 10 * time.Second

// Journals keeps the journal of one run in ConfigMaps of one namespace, next to the journals of
// earlier runs. It implements journal.Store. It is not safe for concurrent use. It needs the
// rights to create, list and delete ConfigMaps.
type Journals struct {
	maps      corev1client.ConfigMapInterface
	client    rest.Interface // for lists, because maps reads pages of any size
	namespace string
	retention journal.Retention
	run       string // the ID, once something was written
	writes    int
}

// NewJournals returns the journals of a namespace.
func NewJournals(core corev1client.CoreV1Interface, namespace string, r journal.Retention) *Journals {
	return &Journals{maps: core.ConfigMaps(namespace), client: core.RESTClient(), namespace: namespace, retention: r}
}

// Write implements journal.Store. A failed Write removes its parts, because they may use up a
// quota. A part that it cannot remove is never the whole write, so that readers see the damage.
func (j *Journals) Write(ctx context.Context, run journal.Run, records []ipam.Record) error {
	parts, err := journal.Split(run, j.writes+1, records)
	if err != nil {
		return err
	}
	var begun []*corev1.ConfigMap
	for _, part := range parts {
		cm, err := configMap(part)
		if err != nil {
			return errors.Join(err, j.takeBack(ctx, begun))
		}
		err = j.create(ctx, cm)
		if err == nil || errors.Is(kube.Transient(err), ipam.ErrAgain) {
			begun = append(begun, cm) // if the answer was lost, the part may be stored
		}
		if err != nil {
			left := j.takeBack(ctx, begun)
			if left != nil {
				j.writes++ // a part may be left: the next write needs other names
			}
			return errors.Join(fmt.Errorf("write the journal: %s: %w", cm.Name, err), left)
		}
	}
	if len(parts) > 0 {
		j.run = run.ID
		j.writes++
	}
	return nil
}

// configMap returns the ConfigMap of a part.
func configMap(part journal.Part) (*corev1.ConfigMap, error) {
	line, err := part.Encode()
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:        partName(part),
			Labels:      map[string]string{JournalLabel: "true", RunLabel: part.Run.ID},
			Annotations: map[string]string{startedKey: part.Run.StartedAt.UTC().Format(time.RFC3339)},
		},
		BinaryData: map[string][]byte{journalKey: zip(line, gzip.DefaultCompression)},
		Immutable:  new(true),
	}, nil
}

// partName returns the name of the ConfigMap of a part.
func partName(p journal.Part) string {
	return fmt.Sprintf("%s-%s-%d-%d", JournalName, strings.ToLower(p.Run.ID), p.Write, p.Part)
}

// create returns nil only if the API server stores the part unchanged. It retries transient
// errors. If the answer to an earlier try was lost, the part already exists, and create returns
// nil.
func (j *Journals) create(ctx context.Context, cm *corev1.ConfigMap) error {
	var stored *corev1.ConfigMap
	err := kube.Patiently(ctx, func(ctx context.Context) (err error) {
		stored, err = j.maps.Create(ctx, cm, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			stored, err = j.find(ctx, cm.Name)
		}
		return err
	})
	err = inNamespace(err, j.namespace)
	if err == nil && !same(stored, cm) {
		err = errors.New("the API server stores another object under this name: delete that object, or look for an admission webhook that changes ConfigMaps")
	}
	return err
}

// find returns the ConfigMap with a name, or nil if it does not exist. It lists, because
// Journals has no right to get.
func (j *Journals) find(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	of := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	list, err := j.maps.List(ctx, metav1.ListOptions{FieldSelector: of})
	switch {
	case err != nil:
		return nil, err
	case list.ResourceVersion == "":
		return nil, errors.New("the answer is not a list: it has no resourceVersion")
	case len(list.Items) == 0:
		return nil, nil //nolint:nilnil // the ConfigMap does not exist
	}
	return &list.Items[0], nil
}

// same reports whether a reader would find the data and the labels of cm.
func same(stored, cm *corev1.ConfigMap) bool {
	return stored != nil && stored.Name == cm.Name && bytes.Equal(stored.BinaryData[journalKey], cm.BinaryData[journalKey]) &&
		stored.Labels[JournalLabel] == cm.Labels[JournalLabel] && stored.Labels[RunLabel] == cm.Labels[RunLabel]
}

// takeBack removes the parts of a failed write, even after ctx has ended.
func (j *Journals) takeBack(ctx context.Context, parts []*corev1.ConfigMap) error {
	ctx, cancel := ipam.Finish(ctx, takeBackTimeout)
	defer cancel()
	var failed []error
	for _, cm := range parts {
		var stored *corev1.ConfigMap
		err := kube.Patiently(ctx, func(ctx context.Context) (err error) {
			stored, err = j.find(ctx, cm.Name)
			return err
		})
		if err == nil && same(stored, cm) {
			err = j.remove(ctx, stored.Name, stored.UID, stored.ResourceVersion)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s could not be removed, and is not a whole journal: %w", cm.Name, err))
		}
	}
	return errors.Join(failed...)
}

// errReplaced says that a part is no longer the object that was listed.
var errReplaced = errors.New("another client changed it or put another object in its place")

// remove deletes a part if it is still as listed. If another client has changed or replaced it
// since, remove leaves it and returns errReplaced.
func (j *Journals) remove(ctx context.Context, name string, uid types.UID, version string) error {
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
	var replaced error
	err := kube.Patiently(ctx, func(ctx context.Context) error {
		err := j.maps.Delete(ctx, name, options)
		switch {
		case kube.Gone(err, "configmaps", name):
			return nil
		case apierrors.IsConflict(err):
			replaced = errReplaced // a retry would get the same answer
			return nil
		}
		return err
	})
	return cmp.Or(err, replaced)
}

// Read returns the journal of a run, with the errors of journal.Find.
func (j *Journals) Read(ctx context.Context, runID string) (journal.Journal, error) {
	return journal.Find(ctx, j, runID)
}

// Where implements journal.Source.
func (j *Journals) Where() string { return "namespace " + j.namespace }

// List returns the runs that have a journal, latest first, by the API server's clock. The
// warnings name the ConfigMaps that could not be read.
func (j *Journals) List(ctx context.Context) (runs []journal.PastRun, warnings []string, err error) {
	parts, err := j.all(ctx)
	summaries := make([]journal.Summary, len(parts))
	for i, p := range parts {
		summaries[i] = p.Summary
	}
	runs, warnings = journal.PastRuns(summaries)
	return runs, warnings, err
}

// Parts implements journal.Source.
func (j *Journals) Parts(ctx context.Context, runID string) ([]journal.StoredPart, error) {
	if !journal.IsRunID(runID) {
		return nil, nil
	}
	var m journal.Meter
	of := labels.Set{JournalLabel: "true", RunLabel: runID}.AsSelector()
	return listParts(ctx, j, of, func(cm *corev1.ConfigMap) journal.StoredPart { return namedPart(&m, cm) })
}

// A storedPart is what is kept of a ConfigMap with a journal's label. Its Summary has an error
// unless the ConfigMap has the part that its name and labels name.
type storedPart struct {
	journal.Summary
	uid     types.UID
	version string // the resource version
	size    int    // of its data, in bytes
}

// all lists the parts of all journals.
func (j *Journals) all(ctx context.Context) ([]storedPart, error) {
	parts, err := listParts(ctx, j, labels.Set{JournalLabel: "true"}.AsSelector(), readStored)
	if err != nil {
		return nil, fmt.Errorf("list the journals: %w", err)
	}
	return parts, nil
}

// readStored returns what is kept of a ConfigMap.
func readStored(cm *corev1.ConfigMap) storedPart {
	part := namedPart(new(journal.Meter), cm)
	return storedPart{
		journal.Summarize(cm.Labels[RunLabel], cm.CreationTimestamp.Time, part), cm.UID, cm.ResourceVersion, len(cm.BinaryData[journalKey]),
	}
}

// listParts lists the ConfigMaps that match a selector, and reduces each.
func listParts[T any](ctx context.Context, j *Journals, of labels.Selector, reduce func(*corev1.ConfigMap) T) ([]T, error) {
	request := func() *rest.Request {
		return j.client.Get().Namespace(j.namespace).Resource("configmaps").Param("labelSelector", of.String())
	}
	all, err := kube.ReadPages(ctx, journalPage, request, kube.FormOf("v1", "ConfigMapList", reduce))
	return all, kube.Answered(err)
}

// namedPart reads the part in a ConfigMap. If a part of the run is in a ConfigMap with another
// name, that is damage: another client copied or forged it.
func namedPart(m *journal.Meter, cm *corev1.ConfigMap) journal.StoredPart {
	data, err := unzip(cm.BinaryData[journalKey], journal.MaxPart+1)
	if err != nil {
		return journal.StoredPart{Name: cm.Name, Err: fmt.Errorf("%w: %s: %w", journal.ErrDamaged, journalKey, err)}
	}
	s := m.Decode(cm.Name, data)
	if name := partName(s.Part); s.Err == nil && s.Part.Run.ID == cm.Labels[RunLabel] && name != cm.Name {
		s.Err = fmt.Errorf("%w: the part belongs into %s", journal.ErrDamaged, name)
	}
	return s
}

// Prune implements journal.Store. It orders the runs by the API server's clock, and stops at
// the first part that it cannot delete.
//
// It deletes only ConfigMaps that are parts of journals by their labels, names and data, and
// that are still as listed. Its error names those that are not parts.
func (j *Journals) Prune(ctx context.Context) error {
	if j.run == "" {
		return nil
	}
	parts, err := j.all(ctx)
	if err != nil {
		return err
	}
	runs, partsOf, foreign := byRun(parts)
	expired, ok := j.retention.Expired(runs, j.run)
	if !ok {
		return fmt.Errorf("%w of the current run %s: another client deleted it", journal.ErrNone, j.run)
	}
	for _, run := range expired {
		for _, p := range partsOf[run] {
			if err := j.remove(ctx, p.Name, p.uid, p.version); err != nil && !errors.Is(err, errReplaced) {
				return fmt.Errorf("remove the journal of run %s: %s: %w", run, p.Name, err)
			}
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	return fmt.Errorf("ConfigMaps with the label %s that ip-reaper did not write were left (delete them, or remove the label): %s",
		JournalLabel, printable.Some(foreign))
}

// byRun returns the runs with their parts, and the names of ConfigMaps that are not parts. A run
// began when its first part was created, by the API server's clock.
func byRun(parts []storedPart) (runs []journal.Stored, partsOf map[string][]storedPart, foreign []string) {
	partsOf = make(map[string][]storedPart)
	for _, p := range parts {
		if p.Err != nil {
			foreign = append(foreign, fmt.Sprintf("%s (%v)", p.Name, p.Err))
			continue
		}
		partsOf[p.Run.ID] = append(partsOf[p.Run.ID], p)
	}
	for id, parts := range partsOf {
		run := journal.Stored{Run: id, Began: parts[0].At, Objects: len(parts)}
		for _, p := range parts {
			run.Size += p.size
			if p.At.Before(run.Began) {
				run.Began = p.At
			}
		}
		runs = append(runs, run)
	}
	return runs, partsOf, foreign
}

// zip compresses data at a level that gzip has. It is deterministic.
func zip(data []byte, level int) []byte {
	var buf bytes.Buffer
	w, _ := gzip.NewWriterLevel(&buf, level)
	_, _ = w.Write(data) // a buffer takes everything
	_ = w.Close()
	return buf.Bytes()
}

// unzip decompresses data. It cuts the result to limit bytes, without an error, so that hostile
// data cannot fill the memory.
func unzip(data []byte, limit int64) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, limit))
}
