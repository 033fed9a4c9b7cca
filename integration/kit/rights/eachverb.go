package rights

import "testing"

// EachVerb tries what an account is there for: with all that it was granted, where
// nothing may go wrong, and without each verb that is wanted, where something has
// to: else the verb is superfluous. It returns how many verbs it took away. Verbs
// are named as by Verb.Of.
func (a *Account) EachVerb(t *testing.T, g Grant, wanted func(verb, role string) bool, try func(*testing.T) (wrong string)) int {
	t.Helper()
	if wrong := try(t); wrong != "" {
		t.Fatalf("with the roles as shipped: %s", wrong)
	}
	g = g.Split()
	tried := 0
	for _, v := range g.Verbs() {
		if !wanted(v.Of(g), v.Role(g)) {
			continue
		}
		tried++
		t.Run("without "+v.Of(g), func(t *testing.T) {
			if err := a.Lose(t.Context(), g, v); err != nil {
				t.Fatal(err)
			}
			if try(t) == "" {
				t.Error("nothing goes wrong: the verb is superfluous")
			}
		})
	}
	return tried
}
