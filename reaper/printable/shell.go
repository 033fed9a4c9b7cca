package printable

import (
	"slices"
	"strings"
)

// unquoted are the characters that mean themselves in every shell; the last one, where no word begins with it.
const unquoted = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+,="

// Typed returns words as a person types them: a POSIX shell reads each of them as one.
func Typed(words ...string) string {
	typed := make([]string, len(words))
	for i, word := range words {
		typed[i] = word
		if word == "" || word[0] == '=' || strings.Trim(word, unquoted) != "" {
			typed[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(typed, " ")
}

// Replaced returns the words of a command with more flags, in place of those of their names.
func Replaced(words []string, flags ...string) []string {
	nameOf := func(word string) string {
		name, _, _ := strings.Cut(word, "=")
		return name
	}
	left := slices.DeleteFunc(slices.Clone(words), func(word string) bool {
		return strings.HasPrefix(word, "--") && slices.ContainsFunc(flags, func(flag string) bool { return nameOf(flag) == nameOf(word) })
	})
	return append(left, flags...)
}
