package build_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	signer "aead.dev/minisign"
	"github.com/jedisct1/go-minisign"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// A key signs one test, and is thrown away.
type key struct{ secret, password, public string }

func newKey(t *testing.T) key {
	t.Helper()
	public, private, err := signer.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := private.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	_, secret, _ := strings.Cut(string(text), "\n")
	return key{secret: secret, public: public.String()}
}

func (k key) env() []string {
	return []string{"MINISIGN_SECRET_KEY=untrusted comment: a key of a test\n" + k.secret, "MINISIGN_PASSWORD=" + k.password}
}

// verify is what minisign -V does, by the library of its author.
func (k key) verify(text, signature string) error {
	public, err := minisign.NewPublicKey(k.public)
	if err != nil {
		return err
	}
	s, err := minisign.DecodeSignature(signature)
	if err != nil {
		return err
	}
	good, err := public.Verify([]byte(text), s)
	if err == nil && !good {
		err = errors.New("the signature is not of this key")
	}
	return err
}

// built builds a program of a release, and returns where it lies.
func built(t *testing.T, name string) string {
	t.Helper()
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), name)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./"+name)
	cmd.Dir = filepath.Join(root, "tools/release")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", name, err, out)
	}
	return program
}

// A release that should be signed and is not, or by a key that nobody can verify, fails. The
// key is never printed.
func TestReleasesAreSigned(t *testing.T) {
	const text = "0123  ip-reaper_v1.2.3_linux_amd64.tar.gz\n"
	sign := built(t, "sign")
	good := newKey(t)
	halves := good.secret[:150] + "AAAA" + good.secret[154:] // in the public half
	for _, tt := range []struct {
		name   string
		key    key
		empty  bool   // the key is set, and empty
		want   string // of what is printed
		signed bool
		fails  bool
	}{
		{name: "no key", want: "*** THE RELEASE IS NOT SIGNED"},
		{name: "an empty key", empty: true, want: "MINISIGN_SECRET_KEY is set, and empty", fails: true},
		{name: "a key", key: good, want: good.public, signed: true},
		{name: "no key of minisign", key: key{secret: "hunter2"}, want: "is no secret key of minisign", fails: true},
		{name: "a damaged key", key: key{secret: halves}, want: "its halves do not belong together", fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := checkout{t, t.TempDir()}
			path := filepath.Join(c.dir, "checksums.txt")
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			env := []string{"SOURCE_DATE_EPOCH=7"}
			if tt.key.secret != "" {
				env = append(env, tt.key.env()...)
			}
			if tt.empty {
				env = append(env, "MINISIGN_SECRET_KEY=")
			}
			out, err := c.runWith(env, sign, path)
			if (err != nil) != tt.fails || !strings.Contains(out, tt.want) {
				t.Errorf("sign: %v, want %q in\n%s", err, tt.want, out)
			}
			if tt.key.secret != "" && strings.Contains(out, strings.TrimSpace(tt.key.secret)) {
				t.Errorf("the secret key was printed:\n%s", out)
			}
			signature, err := os.ReadFile(path + ".minisig")
			if (err == nil) != tt.signed {
				t.Fatalf("signed: %t, want %t", err == nil, tt.signed)
			}
			if tt.signed {
				if err := tt.key.verify(text, string(signature)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
