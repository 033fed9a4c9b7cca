package kube

import "testing"

// The token of the next page is known before the objects are decoded. An API server writes the
// metadata of a list before the objects of its own resources, and behind custom resources.
func TestTokenOfNextPageIsFoundBeforeTheObjectsAreDecoded(t *testing.T) {
	const object = `{"metadata":{"continue":"of an object"},"spec":"\"metadata\":{\"continue\":\"in a text\"}"}`
	for _, tt := range []struct{ name, answer, want string }{
		{"before the objects", `{"kind":"List","metadata":{"continue":"next"},"items":[` + object + `]}`, "next"},
		{"behind the objects", `{"items":[` + object + `],"kind":"List","metadata":{"continue":"next"}}`, "next"},
		{"the last page", `{"items":[` + object + `],"kind":"List","metadata":{"resourceVersion":"9"}}`, ""},
		{"nowhere", `{"items":[]}`, ""},
		{"no list", `[]`, ""},
		{"half an answer", `{"items":[{"meta`, ""},
		{"nothing", ``, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := likelyContinue([]byte(tt.answer)); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
