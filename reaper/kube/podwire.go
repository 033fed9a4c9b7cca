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
	shared sharedTexts
}

// podForm returns the form of a list of pods.
func podForm() listForm[reaper.Pod] {
	form := formOf("v1", "PodList", readPod)
	form.protobuf = newPodReader().read
	return form
}

// newPodReader returns a reader for the pods of a list.
func newPodReader() *podReader { return &podReader{make(sharedTexts)} }

// read returns what readPod returns for the pod that the message decodes to. As in any
// protobuf message, the last of several equal fields counts, and several parts of a message
// are merged.
func (r *podReader) read(message []byte) (reaper.Pod, error) {
	var fields podFields
	if err := r.readFields(message, &fields); err != nil {
		return reaper.Pod{}, err
	}
	return fields.reduce(r.shared), nil
}

// readFields reads the fields of a pod.
func (r *podReader) readFields(message []byte, into *podFields) error {
	return eachField(message, func(f wireField) error {
		var part func(f wireField, into *podFields) error
		switch int32(f.number) {
		case podMetadata:
			part = r.readMeta
		case podSpec:
			part = r.readSpec
		case podStatus:
			part = readStatus
		default:
			return nil
		}
		content, err := f.content()
		if err != nil {
			return err
		}
		return eachField(content, func(f wireField) error { return part(f, into) })
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
func (r *podReader) readMeta(f wireField, into *podFields) (err error) {
	switch int32(f.number) {
	case metaName:
		into.name, err = f.text()
	case metaNamespace:
		into.namespace, err = f.sharedText(r.shared)
	case metaUID:
		into.uid, err = f.text()
	case metaCreated:
		err = f.readSecond(&into.created)
	case metaDeadline:
		err = f.readSecond(&into.deadline)
	case metaDeletionGrace:
		into.deletionGrace, err = f.number64()
	case metaAnnotations:
		var entry []byte
		if entry, err = f.content(); err == nil {
			err = readAnnotation(entry, into)
		}
	}
	return err
}

// readAnnotation reads an entry of the map of annotations. Key and value may come in
// either order; a missing one is empty.
func readAnnotation(entry []byte, into *podFields) error {
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
		into.annotations.set(key, value)
	}
	return err
}

// readSpec reads a field of a PodSpec.
func (r *podReader) readSpec(f wireField, into *podFields) (err error) {
	switch int32(f.number) {
	case specGrace:
		into.grace, err = f.number64()
	case specNodeName:
		into.node, err = f.sharedText(r.shared)
	case specHostNet:
		var set int64
		set, err = f.number64()
		into.hostNetwork = set != 0
	}
	return err
}

// readStatus reads a field of a PodStatus.
func readStatus(f wireField, into *podFields) (err error) {
	switch int32(f.number) {
	case statusPhase:
		into.phase, err = f.text()
	case statusPodIP:
		into.podIP, err = f.text()
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
		into.podIPs = append(into.podIPs, ip)
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
func (f wireField) sharedText(shared sharedTexts) (string, error) {
	return shared.of(f.bytes), f.must(protowire.BytesType)
}

// sharedTexts are texts of which one copy is kept: many pods have the same namespace, node or
// interface. A nil one keeps each alone.
type sharedTexts map[string]string

// of returns the text of these bytes, and does not keep the bytes.
func (s sharedTexts) of(bytes []byte) string {
	if text, ok := s[string(bytes)]; ok {
		return text
	}
	return s.one(string(bytes))
}

// one returns the copy of the text that is kept.
func (s sharedTexts) one(text string) string {
	if kept, ok := s[text]; ok {
		return kept
	}
	if s != nil {
		s[text] = text
	}
	return text
}
