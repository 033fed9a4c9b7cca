package whereabouts

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// namesAny reports whether a JSON document has one of the texts as a whole string, without
// decoding the document.
func namesAny(document json.RawMessage, texts map[string][]int) bool {
	for rest := document; ; {
		begin := bytes.IndexByte(rest, '"')
		if begin < 0 {
			return false
		}
		rest = rest[begin+1:]
		end := bytes.IndexByte(rest, '"')
		if end < 0 {
			return false
		}
		for escaped(rest[:end]) {
			next := bytes.IndexByte(rest[end+1:], '"')
			if next < 0 {
				return false
			}
			end += 1 + next
		}
		if isAny(rest[:end], texts) {
			return true
		}
		rest = rest[end+1:]
	}
}

// escaped reports whether the quote after this part of a string is escaped: it follows an
// odd number of backslashes.
func escaped(before []byte) bool {
	return (len(before)-len(bytes.TrimRight(before, `\`)))%2 == 1
}

// isAny reports whether a string, as it is written between its quotes, is one of the texts.
func isAny(written []byte, texts map[string][]int) bool {
	if bytes.IndexByte(written, '\\') < 0 && utf8.Valid(written) {
		_, ok := texts[string(written)]
		return ok
	}
	var text string
	quoted := append(append([]byte{'"'}, written...), '"')
	if json.Unmarshal(quoted, &text) != nil {
		return false
	}
	_, ok := texts[text]
	return ok
}

// eachNamed calls found with the indices of each text that a document has as a whole value. A
// document that cannot be decoded may have all of them.
func eachNamed(document json.RawMessage, texts map[string][]int, found func(i int)) {
	all := func(text string) {
		for _, i := range texts[text] {
			found(i)
		}
	}
	var value any
	if json.Unmarshal(document, &value) == nil {
		eachString(value, all)
		return
	}
	for text := range texts {
		all(text)
	}
}

// eachString calls found with each string among the values of a decoded document.
func eachString(value any, found func(text string)) {
	switch value := value.(type) {
	case string:
		found(value)
	case []any:
		for _, element := range value {
			eachString(element, found)
		}
	case map[string]any:
		for _, field := range value {
			eachString(field, found)
		}
	}
}
