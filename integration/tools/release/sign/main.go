// Command sign signs files with the minisign key in the environment: sign FILE...
//
// MINISIGN_SECRET_KEY has the content of the key's file, and MINISIGN_PASSWORD its
// password, if it has one. They are never written anywhere. The signature of FILE is
// FILE.minisig. The same key makes the same signature of the same file, because the time in
// it is SOURCE_DATE_EPOCH.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"aead.dev/minisign"
)

func main() {
	if err := run(os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sign:", err)
		os.Exit(1)
	}
}

func run(paths []string, env func(string) string, log io.Writer) error {
	key, err := privateKey(env("MINISIGN_SECRET_KEY"), env("MINISIGN_PASSWORD"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := sign(key, path, env("SOURCE_DATE_EPOCH")); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(log, "signed by the key %s\n", key.Public())
	return err
}

// privateKey reads a key. Its errors do not quote what they read.
func privateKey(secret, password string) (minisign.PrivateKey, error) {
	if minisign.IsEncrypted([]byte(secret)) {
		key, err := minisign.DecryptKey(password, []byte(secret))
		if err != nil {
			return key, errors.New("MINISIGN_PASSWORD does not open MINISIGN_SECRET_KEY")
		}
		return key, nil
	}
	var key minisign.PrivateKey
	if err := key.UnmarshalText([]byte(secret)); err != nil {
		return key, errors.New("MINISIGN_SECRET_KEY is no secret key of minisign")
	}
	return key, nil
}

// sign writes the signature beside the file. A damaged key makes signatures that its own
// public key does not verify, so that is looked at first.
func sign(key minisign.PrivateKey, path, seconds string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	hashed := minisign.NewReader(bytes.NewReader(text))
	if _, err := io.Copy(io.Discard, hashed); err != nil {
		return err
	}
	signature := hashed.SignWithComments(key, "timestamp:"+seconds+"\tfile:"+filepath.Base(path)+"\thashed", "signature of the ip-reaper release")
	if public, ok := key.Public().(minisign.PublicKey); !ok || !minisign.Verify(public, text, signature) {
		return errors.New("MINISIGN_SECRET_KEY is damaged: its halves do not belong together")
	}
	return os.WriteFile(path+".minisig", signature, 0o644)
}
