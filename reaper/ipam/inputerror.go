package ipam

// An InputError is a mistake in the user's input: a flag, a variable, a file, a
// setting. The program finds it before its first write.
type InputError struct {
	Err  error
	Hint string // the right input; empty if the error says it
}

// BadInput returns an *InputError.
func BadInput(err error, hint string) error { return &InputError{Err: err, Hint: hint} }

// Error returns the mistake, without the hint.
func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }
