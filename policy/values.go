package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Disposition is what becomes of a allocation. Only Release releases; any
// other value, the zero value included, means to hold.
type Disposition string

// Hold reports a allocation, Release releases it.
const (
	Hold    Disposition = "hold"
	Release Disposition = "release"
)

// StatefulSetProtection says whether a StatefulSet keeps the allocations of its
// absent pods. Only Ignore gives them up; any other value means to keep them.
type StatefulSetProtection string

// The rules by which a StatefulSet keeps allocations.
const (
	// OrdinalInRange keeps what belongs to an ordinal that the StatefulSet
	// still wants: that pod is coming back.
	OrdinalInRange StatefulSetProtection = "ordinalInRange"

	// Ignore treats the pods of StatefulSets as all others.
	Ignore StatefulSetProtection = "ignore"
)

// Switch says whether a backend is used. In JSON it is "auto" or a boolean.
type Switch int

const (
	// Auto is on where the store is there; elsewhere the backend is skipped.
	Auto Switch = iota

	// On is on, and a store that is not there is a failure.
	On

	// Off is off.
	Off
)

// String returns "auto", "true" or "false".
func (s Switch) String() string {
	switch s {
	case Auto:
		return "auto"
	case On:
		return "true"
	case Off:
		return "false"
	}
	return fmt.Sprintf("Switch(%d)", int(s))
}

// MarshalJSON writes "auto" or a boolean.
func (s Switch) MarshalJSON() ([]byte, error) {
	switch s {
	case Auto:
		return []byte(`"auto"`), nil
	case On, Off:
		return []byte(s.String()), nil
	}
	return nil, fmt.Errorf("%v is no switch", s)
}

// UnmarshalJSON reads "auto" or a boolean, and refuses a boolean in quotes.
func (s *Switch) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"auto"`:
		*s = Auto
	case "true":
		*s = On
	case "false":
		*s = Off
	default:
		return errors.New("must be auto, true or false, the last two without quotes")
	}
	return nil
}

// Duration is a time.Duration that JSON has as a string, such as "15m".
type Duration struct{ time.Duration }

// String returns the duration as it is written by hand: "15m" and not "15m0s".
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

// MarshalJSON writes the string that UnmarshalJSON reads back unchanged.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(d.String())
}

// UnmarshalJSON reads what time.ParseDuration accepts. A number is refused,
// for it has no unit, unless it is 0.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var number float64
	if json.Unmarshal(data, &number) == nil && string(data) != "null" {
		if number != 0 {
			return fmt.Errorf(`must have a unit, such as "%[1]ss" or "%[1]sm"`, data)
		}
		d.Duration = 0
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return errors.New(`must be a duration, such as "15m"`)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return errors.New(`must be a duration in units from h to ns, such as "1h30m"`)
	}
	d.Duration = parsed
	return nil
}
