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
	must(t, err)
	text, err := private.MarshalText()
	must(t, err)
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

// handOut makes the commit and the release of a shell script that runs in a checkout: small,
// but with all that is looked at before it is signed, or published.
const handOut = `
mkdir docs dist again
for page in SECURITY.md docs/install.md; do echo "minisign -P $PUBLIC" >$page; done
git init --quiet && git add SECURITY.md docs && git -c user.name=test -c user.email=test@example.com commit --quiet --message=all
git update-ref refs/remotes/origin/main HEAD
cd dist
echo program >a
echo '   "digest": "sha256:01"' >index.json && tar -cf ip-reaper_v1.2.3_image.tar index.json && rm index.json
echo '    ghcr.io/ip-reaper/ip-reaper:v1.2.3@sha256:01' >ip-reaper_v1.2.3_notes.md
sha256sum * >checksums.txt
echo "\"gitCommit\": \"$(git rev-parse HEAD)\"" >provenance.intoto.json
cp checksums.txt provenance.intoto.json ../again`

// sumUp is what two machines do that made the same files, whatever these are.
const sumUp = `; (cd dist && sha256sum a *_* >checksums.txt); cp dist/checksums.txt again`

// A release is signed, and published, only if it has what two machines made, all of it, and
// nothing else; only by the key that users know; and only for a commit on main. The key
// reaches nothing but the program that signs.
func TestReleasesAreCheckedAndSigned(t *testing.T) {
	root, err := assets.Root()
	must(t, err)
	scripts := filepath.Join(root, "tools/release")
	good, other := newKey(t), newKey(t)
	bin := t.TempDir()
	compiler, err := exec.LookPath("go")
	must(t, err)
	// Of all that is built, nothing may see the key.
	wrapped := "#!/bin/sh\n[ -z \"${MINISIGN_SECRET_KEY-}\" ] || { echo 'go has the key'; exit 1; }\nexec " + compiler + " \"$@\"\n"
	must(t, os.WriteFile(filepath.Join(bin, "go"), []byte(wrapped), 0o755))
	for _, tt := range []struct {
		name   string
		before string   // what is done to the release
		env    []string // the key, if it is not the one that users know
		after  string   // what is done to the signed release
		want   string   // why it is refused
	}{
		{name: "a release"},
		{name: "a changed file", before: "echo more >>dist/a", want: "a file is not what checksums.txt says"},
		{name: "a missing file", before: "rm dist/a", want: "a file is not what checksums.txt says"},
		{name: "a checksum that is none", before: "echo 01  b >>dist/checksums.txt; cp dist/checksums.txt again", want: "a file is not what checksums.txt says"},
		{name: "an added file", before: "touch dist/b", want: "it has other files"},
		{name: "a hidden file", before: "touch dist/.b", want: "it has other files"},
		{name: "a folder", before: "mkdir dist/b", want: "it has other files"},
		{name: "a file elsewhere", before: "cp dist/a b; (cd dist && sha256sum ../b >>checksums.txt); cp dist/checksums.txt again", want: "it has other files"},
		{name: "a link", before: "mv dist/a b; ln -s ../b dist/a", want: "not all of it are files"},
		{name: "other bytes of another machine", before: "sed -i s/0/1/ again/checksums.txt", want: "two machines made a different checksums.txt"},
		{name: "no other machine", before: "rm again/*", want: "two machines made a different checksums.txt"},
		{name: "another builder", before: "echo >>again/provenance.intoto.json", want: "two machines made a different provenance.intoto.json"},
		{name: "a folder that another job replaced", env: append(good.env(), "AGAIN_SUMS="+strings.Repeat("0", 64)), want: "again has not what the other machine made"},
		{name: "a machine that did not say what it made", env: append(good.env(), "AGAIN_SUMS="), want: "again has not what the other machine made"},
		{name: "notes of another image", before: "echo @sha256:012 >dist/ip-reaper_v1.2.3_notes.md" + sumUp, want: "the notes do not name its image, sha256:01"},
		{name: "another commit", before: "echo >dist/provenance.intoto.json; cp dist/provenance.intoto.json again", want: "dist/ is not the release of"},
		{name: "a commit that is not on main", before: "git -c user.name=test -c user.email=test@example.com commit-tree -m other HEAD^{tree} | xargs git update-ref refs/remotes/origin/main", want: "is not on main"},
		{name: "no key", env: []string{"MINISIGN_SECRET_KEY="}, want: "is the key that signs, and is not set"},
		{name: "no key of minisign", env: key{secret: "hunter2"}.env(), want: "is no secret key of minisign"},
		{name: "a damaged key", env: key{secret: good.secret[:150] + "AAAA" + good.secret[154:]}.env(), want: "its halves do not belong together"},
		{name: "a key that no user knows", env: other.env(), want: "checksums.txt is not signed by the key of SECURITY.md"},
		{name: "pages without a key", before: "echo >SECURITY.md; echo >docs/install.md", want: "name no key"},
		{name: "pages with two keys", before: "echo >SECURITY.md", want: "name different keys"},
		{name: "no signature", after: "rm dist/*.minisig; export SIGNED=yes", want: "it is not signed"},
		{name: "one signature", after: "rm dist/checksums.txt.minisig", want: "it has other files"},
		{name: "the signature of another file", after: "cp dist/checksums.txt.minisig dist/provenance.intoto.json.minisig", want: "provenance.intoto.json is not signed by the key of SECURITY.md"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := checkout{t, t.TempDir()}
			if out, err := c.runWith([]string{"PUBLIC=" + good.public}, "sh", "-euc", handOut+"\ncd ..\n"+tt.before); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			path, secret := "PATH="+bin+":"+os.Getenv("PATH"), tt.env
			if secret == nil {
				sums, _ := c.runWith(nil, filepath.Join(scripts, "sums.sh"), "again")
				secret = append(good.env(), "AGAIN_SUMS="+strings.TrimSpace(sums))
			}
			out, err := c.runWith(append(secret, path), filepath.Join(scripts, "sign.sh"), "again")
			if tt.after != "" {
				if err != nil {
					t.Fatalf("sign.sh: %v\n%s", err, out)
				}
				out, err = c.runWith([]string{path}, "sh", "-euc", tt.after+"\n"+filepath.Join(scripts, "check.sh")+" again")
			}
			if (err != nil) != (tt.want != "") || !strings.Contains(out, tt.want) {
				t.Errorf("%v, want %q in\n%s", err, tt.want, out)
			}
			if strings.Contains(out, good.secret) || strings.Contains(out, other.secret) {
				t.Errorf("the secret key was printed:\n%s", out)
			}
			if tt.want == "" {
				for _, name := range []string{"checksums.txt", provenance} {
					if err := good.verify(read(t, c.dir, "dist", name), read(t, c.dir, "dist", name+".minisig")); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			}
		})
	}
}
