package state

import (
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// The numbers of the fields that are read, from the .proto files of k8s.io/api and
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

// podForm returns the form of a list of pods. Its messages are read field by field: a pod has
// some hundred fields that no verdict rests on.
func podForm() kube.Form[census.Pod] {
	form := kube.FormOf("v1", "PodList", readPod)
	form.Protobuf = readPodMessage
	return form
}

// readPodMessage returns what readPod returns for the pod that the message decodes to. As in
// any protobuf message, the last of several values for a field counts, and several parts of a
// message are merged.
func readPodMessage(message []byte) (census.Pod, error) {
	var fields podFields
	if err := readFields(message, &fields); err != nil {
		return census.Pod{}, err
	}
	return fields.reduce(), nil
}

// readFields reads the fields of a pod.
func readFields(message []byte, into *podFields) error {
	return kube.EachField(message, func(f kube.Field) error {
		var part func(f kube.Field, into *podFields) error
		switch int32(f.Number) {
		case podMetadata:
			part = readMeta
		case podSpec:
			part = readSpec
		case podStatus:
			part = readStatus
		default:
			return nil
		}
		content, err := f.Content()
		if err != nil {
			return err
		}
		return kube.EachField(content, func(f kube.Field) error { return part(f, into) })
	})
}

// readMeta reads a field of an ObjectMeta.
func readMeta(f kube.Field, into *podFields) (err error) {
	switch int32(f.Number) {
	case metaName:
		into.name, err = f.Text()
	case metaNamespace:
		into.namespace, err = f.Text()
	case metaUID:
		into.uid, err = f.Text()
	case metaCreated:
		err = readSecond(f, &into.created)
	case metaDeadline:
		err = readSecond(f, &into.deadline)
	case metaDeletionGrace:
		into.deletionGrace, err = f.Int()
	case metaAnnotations:
		var entry []byte
		if entry, err = f.Content(); err == nil {
			err = readAnnotation(entry, into)
		}
	}
	return err
}

// readAnnotation reads an entry of the map of annotations. Key and value may come in
// either order; a missing one is empty.
func readAnnotation(entry []byte, into *podFields) error {
	var key, value []byte
	err := kube.EachField(entry, func(f kube.Field) (err error) {
		switch int32(f.Number) {
		case entryKey:
			key, err = f.Content()
		case entryVal:
			value, err = f.Content()
		}
		return err
	})
	if err == nil {
		into.annotations.set(key, value)
	}
	return err
}

// readSpec reads a field of a PodSpec.
func readSpec(f kube.Field, into *podFields) (err error) {
	switch int32(f.Number) {
	case specGrace:
		into.grace, err = f.Int()
	case specNodeName:
		into.node, err = f.Text()
	case specHostNet:
		var set int64
		set, err = f.Int()
		into.hostNetwork = set != 0
	}
	return err
}

// readStatus reads a field of a PodStatus.
func readStatus(f kube.Field, into *podFields) (err error) {
	switch int32(f.Number) {
	case statusPhase:
		into.phase, err = f.Text()
	case statusPodIP:
		into.podIP, err = f.Text()
	case statusPodIPs:
		var message []byte
		if message, err = f.Content(); err != nil {
			return err
		}
		var ip string
		err = kube.EachField(message, func(f kube.Field) (err error) {
			if f.Number == podIPText {
				ip, err = f.Text()
			}
			return err
		})
		into.podIPs = append(into.podIPs, ip)
	}
	return err
}

// readSecond reads the seconds of a Time field.
func readSecond(f kube.Field, to *int64) error {
	message, err := f.Content()
	if err != nil {
		return err
	}
	*to = 0
	return kube.EachField(message, func(f kube.Field) (err error) {
		if f.Number == timeSeconds {
			*to, err = f.Int()
		}
		return err
	})
}
