package kube

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// protobufPrefix begins each answer of an API server in protobuf. A message follows that
// has the kind of the object, and the object.
const protobufPrefix = "k8s\x00"

// The numbers of the fields that are read of that message (runtime.Unknown), of the kind
// (TypeMeta), of a list, and of its ListMeta.
const (
	unknownType, unknownRaw         = 1, 2
	typeAPIVersion, typeKind        = 1, 2
	listMetadata, listItems         = 1, 2
	listVersion, listContinue       = 2, 3
	listShard                       = 5
	maxType                   int64 = 1 << 10 // bytes
)

// errNotProtobuf is the error of an answer in another form.
var errNotProtobuf = errors.New("the answer is not in protobuf")

// A podPage is a list of pods, or a page of one.
type podPage struct {
	pods            []reaper.Pod
	resourceVersion string
	next            string // the token of the next page; empty after the last page
}

// readPodList reads a list of pods in protobuf to its end, pod by pod, so that neither the
// list nor an object is held. It returns the whole answer or an error, never a part. An
// object may have MaxPage bytes.
func readPodList(from io.Reader, pods *podReader) (podPage, error) {
	s := &wireStream{from: bufio.NewReaderSize(from, 64<<10)}
	prefix := make([]byte, len(protobufPrefix))
	if _, err := io.ReadFull(s.from, prefix); err != nil {
		return podPage{}, unexpected(err)
	}
	if string(prefix) != protobufPrefix {
		return podPage{}, errNotProtobuf
	}
	list, err := readUnknown(s, pods)
	switch {
	case err != nil:
		return podPage{}, fmt.Errorf("decode: %w", err)
	case list.resourceVersion == "":
		return podPage{}, errNoList
	}
	return list, nil
}

// readUnknown reads the message that has the kind and the list.
func readUnknown(s *wireStream, pods *podReader) (podPage, error) {
	const end = 1 << 62 // the message ends with the stream
	var list podPage
	var isPods, complete bool
	for {
		number, kind, err := s.tag()
		switch {
		case errors.Is(err, io.EOF) && complete && isPods:
			return list, nil
		case err != nil:
			return podPage{}, unexpected(err)
		case number == unknownRaw && complete:
			return podPage{}, errors.New("the answer has two objects")
		case number == unknownRaw:
			var size int64
			if size, err = s.size(kind, end); err == nil {
				err = list.read(s, s.offset+size, pods)
			}
			complete = true
		default: // none is long
			var content []byte
			content, err = s.content(kind, s.offset+maxType)
			if err == nil && number == unknownType {
				isPods, err = isPodList(content)
			}
		}
		if err != nil {
			return podPage{}, err
		}
	}
}

// isPodList reports whether a TypeMeta is that of a list of pods; if not, the error says
// what it is.
func isPodList(message []byte) (bool, error) {
	var version, name string
	err := eachField(message, func(f wireField) (err error) {
		switch int32(f.number) {
		case typeAPIVersion:
			version, err = f.text()
		case typeKind:
			name, err = f.text()
		}
		return err
	})
	if err == nil && (version != "v1" || name != "PodList") {
		err = fmt.Errorf("the answer is not a list of pods: it is a %q of %q", name, version)
	}
	return err == nil, err
}

// read reads the list, which ends at an offset of the stream.
func (l *podPage) read(s *wireStream, end int64, pods *podReader) error {
	begin := s.offset
	for s.offset < end {
		number, kind, err := s.tag()
		if err != nil {
			return unexpected(err)
		}
		content, err := s.content(kind, end)
		switch {
		case err != nil:
			return err
		case number == listMetadata:
			err = eachField(content, l.readMeta)
		case number == listItems:
			var pod reaper.Pod
			pod, err = pods.read(content)
			l.add(pod, s.offset-begin, end-begin)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// add adds a pod. It makes room for as many pods as the list seems to have, after so many
// bytes of all, but for no more than twice as many as there are.
func (l *podPage) add(pod reaper.Pod, read, all int64) {
	if n := len(l.pods); n == cap(l.pods) {
		expected := float64(n+1) * (float64(all-read) / float64(read))
		l.pods = slices.Grow(l.pods, int(min(expected, float64(n)))+16)
	}
	l.pods = append(l.pods, pod)
}

// readMeta reads a field of a ListMeta.
func (l *podPage) readMeta(f wireField) (err error) {
	switch int32(f.number) {
	case listVersion:
		l.resourceVersion, err = f.text()
	case listContinue:
		l.next, err = f.text()
	case listShard:
		err = errShard
	}
	return err
}

// protobufContinue returns the token of the next page from the beginning of an answer, and
// nothing if it is not there.
func protobufContinue(body []byte) string {
	if len(body) < len(protobufPrefix) {
		return ""
	}
	var page podPage
	raw := firstField(body[len(protobufPrefix):], unknownRaw)
	_ = eachField(firstField(raw, listMetadata), page.readMeta) // readPodList says what is wrong
	return page.next
}

// firstField returns the content of the first field of that number; nil if there is none.
func firstField(message []byte, number protowire.Number) []byte {
	for len(message) > 0 {
		f, rest, err := nextField(message)
		if err != nil {
			return nil
		}
		if f.number == number {
			return f.bytes
		}
		message = rest
	}
	return nil
}
