package backends_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// resolve returns s with the definition that it refers to.
func resolve(root, s node) node {
	if ref, ok := s["$ref"].(string); ok {
		merged := maps.Clone(root["$defs"].(node)[strings.TrimPrefix(ref, "#/$defs/")].(node))
		maps.Copy(merged, s)
		delete(merged, "$ref")
		return merged
	}
	return s
}

// accepts is a validator for the keywords that the schema has.
func accepts(root, s node, value any) bool {
	for keyword, want := range resolve(root, s) {
		if !acceptsKeyword(root, s, keyword, want, value) {
			return false
		}
	}
	return true
}

// patterns are the patterns of the schema, compiled.
var patterns sync.Map

// compiled compiles a pattern once.
func compiled(pattern string) *regexp.Regexp {
	if known, ok := patterns.Load(pattern); ok {
		return known.(*regexp.Regexp)
	}
	made := regexp.MustCompile(pattern)
	patterns.Store(pattern, made)
	return made
}

func acceptsKeyword(root, s node, keyword string, want, value any) bool {
	object, isObject := value.(node)
	array, isArray := value.([]any)
	number, isNumber := value.(float64)
	text, isText := value.(string)
	switch keyword {
	case "type":
		_, isBool := value.(bool)
		return map[any]bool{
			"object": isObject, "array": isArray, "string": isText, "boolean": isBool, "number": isNumber,
			"integer": isNumber && number == float64(int64(number)),
		}[want]
	case "const":
		return cmp.Equal(value, want)
	case "enum":
		return slices.ContainsFunc(want.([]any), func(w any) bool { return cmp.Equal(value, w) })
	case "anyOf":
		return slices.ContainsFunc(want.([]any), func(w any) bool { return accepts(root, w.(node), value) })
	case "minimum":
		return !isNumber || number >= want.(float64)
	case "exclusiveMinimum":
		return !isNumber || number > want.(float64)
	case "maximum":
		return !isNumber || number <= want.(float64)
	case "pattern":
		return !isText || compiled(want.(string)).MatchString(text)
	case "maxLength":
		return !isText || float64(utf8.RuneCountInString(text)) <= want.(float64)
	case "minLength":
		return !isText || float64(utf8.RuneCountInString(text)) >= want.(float64)
	case "maxProperties":
		return !isObject || float64(len(object)) <= want.(float64)
	case "dependentRequired":
		for name, needs := range want.(node) {
			_, ok := object[name]
			if ok && !acceptsKeyword(root, s, "required", needs, value) {
				return false
			}
		}
		return true
	case "minItems":
		return !isArray || float64(len(array)) >= want.(float64)
	case "items":
		return !slices.ContainsFunc(array, func(v any) bool { return !accepts(root, want.(node), v) })
	case "required":
		return !isObject || !slices.ContainsFunc(want.([]any), func(w any) bool { _, ok := object[w.(string)]; return !ok })
	case "properties":
		for name, property := range want.(node) {
			if v, ok := object[name]; ok && !accepts(root, property.(node), v) {
				return false
			}
		}
		return true
	case "additionalProperties":
		properties, _ := s["properties"].(node)
		for name, v := range object {
			if _, ok := properties[name]; !ok && (want == false || !accepts(root, want.(node), v)) {
				return false
			}
		}
		return true
	case "$schema", "$defs", "title", "description", "default":
		return true
	}
	panic("the validator does not know the keyword " + keyword)
}
