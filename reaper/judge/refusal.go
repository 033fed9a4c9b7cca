package judge

// A Refusal is one limit that the plan exceeds.
type Refusal struct {
	Limit   string `json:"limit"`   // the policy's field, or a description
	Message string `json:"message"` // the limit and the figures
	Remedy  string `json:"remedy"`  // what the operator does, in one sentence
}
