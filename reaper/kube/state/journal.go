package state

import (
	"bytes"
	"cmp"
	"compress/gzip"
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
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
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
	data, err := zip(line, gzip.DefaultCompression)
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:        partName(part),
			Labels:      map[string]string{JournalLabel: "true", RunLabel: part.Run.ID},
			Annotations: map[string]string{startedKey: part.Run.StartedAt.UTC().Format(time.RFC3339)},
		},
		BinaryData: map[string][]byte{journalKey: data},
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackTimeout)
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
