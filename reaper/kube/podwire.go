package kube

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// The numbers of the fields that are read, by the .proto files of k8s.io/api and of
// k8s.io/apimachinery. A number never changes its meaning.
const (
	podMetadata, podSpec, podStatus = 1, 2, 3

	metaName, metaNamespace, metaUID       = 1, 3, 5
	metaCreated, metaDeadline              = 8, 9
	metaDeletionGrace, metaAnnotations     = 10, 12
	specGrace, specNodeName, specHostNet   = 4, 10, 11
	statusPhase, statusPodIP, statusPodIPs = 1, 6, 12

	podIPText          = 1
	timeSeconds        = 1
	entryKey, entryVal = 1, 2
)

// A podReader reads pods in protobuf. It reads the fields that verdicts rest on, and skips
// the others. It is not safe for concurrent use.
type podReader struct {
	kept *slabs
}

// podForm returns the form of a list of pods.
func podForm() listForm[reaper.Pod] {
	form := formOf("v1", "PodList", readPod)
	form.protobuf = newPodReader().read
	return form
}

// newPodReader returns a reader for the pods of a list.
func newPodReader() *podReader { return &podReader{kept: newSlabs()} }

// read returns what readPod returns for the pod that the message decodes to. As in any
// protobuf message, the last of several equal fields counts, and several parts of a message
// are merged.
func (r *podReader) read(message []byte) (reaper.Pod, error) {
	var w wirePod
	if err := w.read(message, r.kept); err != nil {
		return reaper.Pod{}, err
	}
	w.fields.name, w.fields.uid = r.kept.texts.Keep(string(w.name)), r.kept.texts.Keep(string(w.uid))
	return w.fields.reduce(r.kept), nil
}

// A wirePod is a pod of which some fields have been read.
type wirePod struct {
	name, uid []byte // parts of the message
	fields    podFields
}

// read reads the fields of a pod.
func (w *wirePod) read(message []byte, kept *slabs) error {
	return eachField(message, func(f wireField) error {
		var part func(f wireField) error
		switch int32(f.number) {
		case podMetadata:
			part = func(f wireField) error { return w.readMeta(f, kept) }
		case podSpec:
			part = func(f wireField) error { return w.readSpec(f, kept) }
		case podStatus:
			part = w.readStatus
		default:
			return nil
		}
		content, err := f.content()
		if err != nil {
			return err
		}
		return eachField(content, part)
	})
}

// eachField calls a function with each field of a message, until it returns an error.
func eachField(message []byte, read func(wireField) error) error {
	for len(message) > 0 {
		f, rest, err := nextField(message)
		if err == nil {
			err = read(f)
		}
		if err != nil {
			return err
		}
		message = rest
	}
	return nil
}

// readMeta reads a field of an ObjectMeta.
func (w *wirePod) readMeta(f wireField, kept *slabs) (err error) {
	switch int32(f.number) {
	case metaName:
		w.name, err = f.content()
	case metaNamespace:
		w.fields.namespace, err = f.sharedText(kept)
	case metaUID:
		w.uid, err = f.content()
	case metaCreated:
		err = f.readSecond(&w.fields.created)
	case metaDeadline:
		err = f.readSecond(&w.fields.deadline)
	case metaDeletionGrace:
		w.fields.deletionGrace, err = f.number64()
	case metaAnnotations:
		var entry []byte
		if entry, err = f.content(); err == nil {
			err = w.readAnnotation(entry)
		}
	}
	return err
}

// readAnnotation reads an entry of the map of annotations. Key and value may come in
// either order; a missing one is empty.
func (w *wirePod) readAnnotation(entry []byte) error {
	var key, value []byte
	err := eachField(entry, func(f wireField) (err error) {
		switch int32(f.number) {
		case entryKey:
			key, err = f.content()
		case entryVal:
			value, err = f.content()
		}
		return err
	})
	if err == nil {
		w.fields.annotations.set(key, value)
	}
	return err
}

// readSpec reads a field of a PodSpec.
func (w *wirePod) readSpec(f wireField, kept *slabs) (err error) {
	switch int32(f.number) {
	case specGrace:
		w.fields.grace, err = f.number64()
	case specNodeName:
		w.fields.node, err = f.sharedText(kept)
	case specHostNet:
		var set int64
		set, err = f.number64()
		w.fields.hostNetwork = set != 0
	}
	return err
}

// readStatus reads a field of a PodStatus.
func (w *wirePod) readStatus(f wireField) (err error) {
	switch int32(f.number) {
	case statusPhase:
		w.fields.phase, err = f.text()
	case statusPodIP:
		w.fields.podIP, err = f.text()
	case statusPodIPs:
		var message []byte
		if message, err = f.content(); err != nil {
			return err
		}
		var ip string
		err = eachField(message, func(f wireField) (err error) {
			if f.number == podIPText {
				ip, err = f.text()
			}
			return err
		})
		w.fields.podIPs = append(w.fields.podIPs, ip)
	}
	return err
}

// readSecond reads the seconds of the Time that the field is.
func (f wireField) readSecond(to *int64) error {
	message, err := f.content()
	if err != nil {
		return err
	}
	*to = 0
	return eachField(message, func(f wireField) (err error) {
		if f.number == timeSeconds {
			*to, err = f.number64()
		}
		return err
	})
}

// text returns a copy of the text that the field is.
func (f wireField) text() (string, error) { return string(f.bytes), f.must(protowire.BytesType) }

// sharedText is text for one that many pods have.
func (f wireField) sharedText(kept *slabs) (string, error) {
	return kept.sharedOf(f.bytes), f.must(protowire.BytesType)
}
