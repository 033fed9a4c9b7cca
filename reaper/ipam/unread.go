package ipam

import "errors"

// An UnreadError says that files lack a list, or what else was asked for. Unlike in the answer of a server,
// that says nothing about what there is. It wraps ErrRefused.
type UnreadError struct {
	List string // what the list has, such as "StatefulSets"
	Part bool   // the files have a part of the list
}

// Error names the list.
func (e *UnreadError) Error() string { return UnreadSays + e.List }

// Unwrap returns ErrRefused: to ask again does not help.
func (e *UnreadError) Unwrap() error { return ErrRefused }

// Protects is what an allocation is protected by that something in the list may keep.
func (e *UnreadError) Protects() string { return e.Error() + ", and one may keep it" }

// UnreadSays begins the text of an UnreadError.
const UnreadSays = "the files do not list all "

// IsUnread reports whether an error wraps an *UnreadError.
func IsUnread(err error) bool {
	_, is := errors.AsType[*UnreadError](err)
	return is
}
