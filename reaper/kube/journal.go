package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// A part of a journal lives in a ConfigMap of its own, which is created and
// deleted, but never written again: JournalName, the run, the number of the write
// and that of the part. It is found by its labels.
const (
	JournalName  = "ip-reaper-journal"
	JournalLabel = "ip-reaper/journal" // "true"
	RunLabel     = "ip-reaper/run"     // the run's ID

	startedKey  = "ip-reaper/started-at" // for people: runs are ordered by the API server's clock
	journalKey  = "journal.json.gz"
	journalPage = 10 // ConfigMaps a page: each may have 1 MiB
)

// takeBackTimeout is how long it may take to remove what a failed write has left.
const takeBackTimeout = 10 * time.Second

// Journals keeps the journal of one run in ConfigMaps of one namespace, beside
// those of earlier runs. It implements reaper.Journals; its methods are for one
// goroutine. It needs the rights to create, list and delete ConfigMaps.
type Journals struct {
	maps      corev1client.ConfigMapInterface
	namespace string
	keep      int
	run       string // the ID, once something was written
	writes    int
}

// NewJournals returns the journals of the namespace. As many runs are kept as keep
// says, the one that writes included; at least that one.
func NewJournals(core corev1client.ConfigMapsGetter, namespace string, keep int) *Journals {
	return &Journals{maps: core.ConfigMaps(namespace), namespace: namespace, keep: max(1, keep)}
}

// Write implements reaper.Journals. What a Write that failed has left, and could
// not remove, is a part of many.
func (j *Journals) Write(ctx context.Context, run reaper.JournalRun, records []reaper.Record) error {
	parts, err := journal.Encode(run, j.writes+1, records)
	if err != nil || len(parts) == 0 {
		return err
	}
	var begun []*corev1.ConfigMap
	for i, data := range parts {
		cm, err := j.configMap(run, i+1, data)
		if err != nil {
			return err
		}
		err = j.create(ctx, cm)
		if err == nil || errors.Is(Transient(err), reaper.ErrAgain) {
			begun = append(begun, cm) // without an answer it may be there, too
		}
		if err != nil {
			return errors.Join(fmt.Errorf("write the journal: %s: %w", cm.Name, err), j.takeBack(ctx, begun))
		}
	}
	j.run = run.ID
	j.writes++
	return nil
}

// configMap returns the nth part of the next write.
func (j *Journals) configMap(run reaper.JournalRun, n int, part []byte) (*corev1.ConfigMap, error) {
	data, err := zip(part)
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:        fmt.Sprintf("%s%d-%d", namePrefix(run.ID), j.writes+1, n),
			Labels:      map[string]string{JournalLabel: "true", RunLabel: run.ID},
			Annotations: map[string]string{startedKey: run.StartedAt.UTC().Format(time.RFC3339)},
		},
		BinaryData: map[string][]byte{journalKey: data},
		Immutable:  new(true),
	}, nil
}

// namePrefix is how the names of all parts of a run begin.
func namePrefix(runID string) string { return JournalName + "-" + strings.ToLower(runID) + "-" }

// create returns nil only when the API server has the part as it is. Whatever may
// pass is tried again; if an earlier try was carried out and only its answer got
// lost, the part is there, and that is as good.
func (j *Journals) create(ctx context.Context, cm *corev1.ConfigMap) error {
	var stored *corev1.ConfigMap
	err := Patiently(ctx, func(ctx context.Context) (err error) {
		stored, err = j.maps.Create(ctx, cm, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			stored, err = j.find(ctx, cm.Name)
		}
		return err
	})
	if err == nil && !same(stored, cm) {
		err = errors.New("there is another object of this name, or somebody changes what is written")
	}
	return err
}

// find returns the ConfigMap of a name, nil if there is none. A list needs no right
// that Read does not need.
func (j *Journals) find(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	of := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	list, err := j.maps.List(ctx, metav1.ListOptions{FieldSelector: of})
	switch {
	case err != nil:
		return nil, err
	case list.ResourceVersion == "":
		return nil, errNoList
	case len(list.Items) == 0:
		return nil, nil //nolint:nilnil // it is not there
	}
	return &list.Items[0], nil
}

// same reports whether a reader would find what was to be written.
func same(stored, cm *corev1.ConfigMap) bool {
	return stored != nil && stored.Name == cm.Name && bytes.Equal(stored.BinaryData[journalKey], cm.BinaryData[journalKey]) &&
		stored.Labels[JournalLabel] == cm.Labels[JournalLabel] && stored.Labels[RunLabel] == cm.Labels[RunLabel]
}

// takeBack removes the parts of a write that failed, also when the write failed
// because the run is being ended.
func (j *Journals) takeBack(ctx context.Context, parts []*corev1.ConfigMap) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackTimeout)
	defer cancel()
	var failed []error
	for _, cm := range parts {
		var stored *corev1.ConfigMap
		err := Patiently(ctx, func(ctx context.Context) (err error) {
			stored, err = j.find(ctx, cm.Name)
			return err
		})
		if err == nil && same(stored, cm) {
			err = j.remove(ctx, stored.Name, stored.UID)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s may stay, and is no journal: %w", cm.Name, err))
		}
	}
	return errors.Join(failed...)
}

// remove deletes a part; not another one that has got its name.
func (j *Journals) remove(ctx context.Context, name string, uid types.UID) error {
	return Patiently(ctx, func(ctx context.Context) error {
		err := j.maps.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if Gone(err, "configmaps", name) || apierrors.IsConflict(err) {
			return nil
		}
		return err
	})
}
