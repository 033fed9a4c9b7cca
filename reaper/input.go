package reaper

// An InputError is a mistake in what the user gave: a flag, a variable, a file, a
// setting. The program finds it before it writes anything.
type InputError struct {
	Err  error
	Hint string // what to give instead; empty where the error says so
}

// BadInput returns an *InputError.
func BadInput(err error, hint string) error { return &InputError{Err: err, Hint: hint} }

// Error says what is wrong with the input, without the hint.
func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }
