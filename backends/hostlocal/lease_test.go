package hostlocal

import (
	"net"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const id = "5be1a8d8d4b1d9ae5c6f8c5d8a0d2bd3f2d8e4f5a6b7c8d9e0f1a2b3c4d5e6f7"

// Every form in which a version of the plugin writes a lease, and some that are not leases.
func TestContentOfLeases(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		want          attachment
		fails         bool
	}{
		{"since 0.8", id + "\r\neth0", attachment{id, "eth0"}, false},
		{"before 0.8", id, attachment{id, ""}, false},
		{"of cni 0.3, untrimmed", " " + id + "\n", attachment{id, ""}, false},
		{"with a newline at the end", id + "\r\nnet1\n", attachment{id, "net1"}, false},
		{"an ID that is no hash", "cni-7e_1.a", attachment{"cni-7e_1.a", ""}, false},
		{"empty", "", attachment{}, true},
		{"a newline alone between", id + "\neth0", attachment{}, true},
		{"no interface", id + "\r\n\r\nx", attachment{}, true},
		{"an interface that is too long", id + "\r\n0123456789abcdef", attachment{}, true},
		{"two words", "two words", attachment{}, true},
		{"an ID that leads out of a folder", "../../etc/passwd", attachment{}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readAttachment([]byte(tt.content))
			if got != tt.want || (err != nil) != tt.fails {
				t.Errorf("readAttachment = %+v, %v, want %+v, an error: %v", got, err, tt.want, tt.fails)
			}
		})
	}
}

func TestNamesOfLeases(t *testing.T) {
	for name, want := range map[string]bool{
		"10.0.0.5": true, "255.255.255.255": true, "fd00::a": true, "2001:db8::1:0:0:1": true, "::": true,
		"FD00::A": false, "fd00:0::a": false, "::ffff:10.0.0.5": false, "fe80::1%eth0": false, "010.0.0.5": false, "10.0.5": false,
		"10.0.0.5.tmp": false, "10.0.0.5 ": false, "..": false, "": false, "foo.bak": false, "10.0.0.5/24": false,
	} {
		if got := addressOf(name); got.IsValid() != want {
			t.Errorf("addressOf(%q) = %v, want an address: %v", name, got, want)
		}
	}
}

// All of the plugin's own forms of addresses are known.
func TestNamesAreThoseOfThePlugin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address")
		if rapid.Bool().Draw(t, "IPv4") {
			bytes = bytes[:4]
		}
		if rapid.Bool().Draw(t, "zeros") {
			clear(bytes[1 : len(bytes)-1])
		}
		name := net.IP(bytes).String()
		if got := addressOf(name); got.String() != name {
			t.Errorf("addressOf(%q) = %v", name, got)
		}
	})
}

// Promise 1. Different files have different tokens.
func TestTokens(t *testing.T) {
	at := time.Unix(1, 1)
	a := file{name: "10.0.0.1", inode: 1, size: 2, mtime: at, content: []byte("ab")}
	seen := map[string]bool{a.token(): true}
	for _, change := range []func(*file){
		func(f *file) { f.inode++ }, func(f *file) { f.size++ }, func(f *file) { f.mtime = f.mtime.Add(1) }, func(f *file) { f.content = []byte("ac") },
	} {
		b := a
		change(&b)
		if seen[b.token()] {
			t.Errorf("%+v has the token of another file", b)
		}
		seen[b.token()] = true
	}
}
