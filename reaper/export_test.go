package reaper

import "time"

// AgeOf returns how old a look is.
func AgeOf(looked, now time.Time) time.Duration { return ageOf(looked, now) }
