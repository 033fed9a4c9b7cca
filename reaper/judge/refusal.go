package judge

import "strings"

// A Refusal is one limit that the plan exceeds.
type Refusal struct {
	Limit   string `json:"limit"`   // the policy's field, or a description
	Message string `json:"message"` // the limit and the figures
	Remedy  string `json:"remedy"`  // what the operator does, in one sentence
}

// noPods names the limit of a plan whose census is empty. It is not a field of the policy.
const noPods = "noPods"

// LimitNames returns the names of the limits that an operator may lift.
func LimitNames() []string { return []string{"maxReleases", "maxFraction", "maxPodDrop", noPods} }

// Name returns the one of LimitNames that refuses.
func (r Refusal) Name() string {
	if field, ok := strings.CutPrefix(r.Limit, "limits."); ok {
		return field
	}
	return noPods
}

// refusal returns a Refusal. The advice says what to do before the limit is lifted.
func refusal(limit, message, advice string) Refusal {
	r := Refusal{Limit: limit, Message: limit + ": " + message}
	r.Remedy = advice + " give --unsafe-ignore-limit=" + r.Name()
	return r
}
