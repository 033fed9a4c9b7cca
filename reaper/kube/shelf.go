package kube

// texts are texts of which one copy is kept: many pods have the same namespace, node or
// interface. It is not safe for concurrent use. The nil texts keep none.
type texts map[string]string

// of returns the text of these bytes, and does not keep the bytes.
func (t texts) of(bytes []byte) string {
	if text, ok := t[string(bytes)]; ok {
		return text
	}
	return t.one(string(bytes))
}

// one returns the copy of the text that is kept.
func (t texts) one(text string) string {
	if t == nil {
		return text
	}
	if kept, ok := t[text]; ok {
		return kept
	}
	t[text] = text
	return text
}
