package policy

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// A Disposition says whether an allocation may be released. Only Release allows it.
// Any other value, the zero value included, means Hold.
type Disposition string

// Hold keeps and reports an allocation. Release allows its release.
const (
	Hold    Disposition = "hold"
	Release Disposition = "release"
)

// A StatefulSetProtection says whether a StatefulSet protects the allocations of
// its absent pods. Only Ignore means that it does not. Any other value means that
// it does.
type StatefulSetProtection string

// The values of a StatefulSetProtection.
const (
	// OrdinalInRange protects the allocations of an ordinal that the StatefulSet
	// still wants, because that pod will come back.
	OrdinalInRange StatefulSetProtection = "ordinalInRange"

	// Ignore treats the pods of StatefulSets like all others.
	Ignore StatefulSetProtection = "ignore"
)

// An AnnotationEvidence says for which allocations a pod's annotation is evidence. Only
// OwnAnnotations excludes allocations that name another pod. Any other value means that it is
// evidence for all.
type AnnotationEvidence string

// The values of an AnnotationEvidence.
const (
	KeepAnnotations AnnotationEvidence = "keep"
	OwnAnnotations  AnnotationEvidence = "own"
)

// A Switch says whether a backend is used. In JSON it is "auto" or a boolean.
type Switch int

const (
	// Auto uses the backend if its store is installed, and skips it otherwise.
	Auto Switch = iota

	// On uses the backend. A store that is not installed is a failure.
	On

	// Off does not use the backend.
	Off
)

// UnmarshalJSON reads "auto" or a boolean. It refuses a boolean in quotes.
func (s *Switch) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"auto"`:
		*s = Auto
	case "true":
		*s = On
	case "false":
		*s = Off
	default:
		return &json.UnmarshalTypeError{Value: string(data), Type: reflect.TypeFor[Switch]()}
	}
	return nil
}

// durationPattern is the pattern of durations in the schema. Durations that it matches do not
// overflow: six of the largest parts are about 190 years.
var durationPattern = regexp.MustCompile(`^[+]?(0|(([0-9]{1,5}([.][0-9]*)?|[.][0-9]+)h|([0-9]{1,7}([.][0-9]*)?|[.][0-9]+)m|([0-9]{1,9}([.][0-9]*)?|[.][0-9]+)s|([0-9]{1,12}([.][0-9]*)?|[.][0-9]+)ms|([0-9]{1,15}([.][0-9]*)?|[.][0-9]+)(us|µs|μs)|([0-9]{1,18}([.][0-9]*)?|[.][0-9]+)ns){1,6})$`)

// A Duration is a time.Duration that is a string in JSON, such as "15m".
type Duration struct{ time.Duration }

// String returns the duration as people write it: "15m" and not "15m0s".
func (d Duration) String() string {
	s := d.Duration.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalJSON writes a string that UnmarshalJSON reads as the same duration.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(d.String())
}

// UnmarshalJSON reads a string for time.ParseDuration. It refuses a number other
// than 0, because a number has no unit.
func (d *Duration) UnmarshalJSON(data []byte) error {
	wrong := &json.UnmarshalTypeError{Value: string(data), Type: reflect.TypeFor[Duration]()}
	if string(data) == "0" {
		data = []byte(`"0"`)
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return wrong
	}
	parsed, err := time.ParseDuration(text)
	if err != nil || parsed >= 0 && !durationPattern.MatchString(text) {
		return wrong
	}
	d.Duration = parsed
	return nil
}
