// Command provenance says how the files in a folder were made: provenance FOLDER.
//
// It writes FOLDER/provenance.intoto.json: an in-toto statement with SLSA provenance v1.
// Every file in the folder is a subject. What it says comes from the environment of the
// steps of a release, and from BUILDER_ID and INVOCATION_ID, which a build service sets.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const (
	name          = "provenance.intoto.json"
	predicateType = "https://slsa.dev/provenance/v1"
	repository    = "https://github.com/ip-reaper/ip-reaper"
	page          = repository + "/blob/main/docs/release.md"
)

func main() {
	if err := run(os.Args[1:], os.Getenv); err != nil {
		fmt.Fprintln(os.Stderr, "provenance:", err)
		os.Exit(1)
	}
}

func run(args []string, env func(string) string) error {
	if len(args) != 1 {
		return errors.New("usage: provenance FOLDER")
	}
	files, err := subjects(args[0])
	if err != nil {
		return err
	}
	made, err := predicate(env)
	if err != nil {
		return err
	}
	statement := &intoto.Statement{
		Type: intoto.StatementTypeUri, PredicateType: predicateType, Subject: files, Predicate: made,
	}
	if err := statement.Validate(); err != nil {
		return err
	}
	text, err := protojson.Marshal(statement)
	if err != nil {
		return err
	}
	var indented bytes.Buffer // protojson sets blanks at random
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		return err
	}
	indented.WriteByte('\n')
	return os.WriteFile(filepath.Join(args[0], name), indented.Bytes(), 0o644)
}

// subjects returns the files of the folder with their hashes, sorted by name.
func subjects(folder string) ([]*intoto.ResourceDescriptor, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var files []*intoto.ResourceDescriptor
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		files = append(files, &intoto.ResourceDescriptor{
			Name: entry.Name(), Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])},
		})
	}
	return files, nil
}

// predicate returns how the release was made. Its times are that of the commit: two
// builders agree on them.
func predicate(env func(string) string) (*structpb.Struct, error) {
	seconds, err := strconv.ParseInt(env("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	platforms := []any{}
	for platform := range strings.FieldsSeq(env("platforms")) {
		platforms = append(platforms, platform)
	}
	external, err := structpb.NewStruct(map[string]any{
		"repository": repository, "version": env("version"), "platforms": platforms,
	})
	if err != nil {
		return nil, err
	}
	builder := env("BUILDER_ID")
	if builder == "" {
		builder = page + "#by-hand"
	}
	at := timestamppb.New(time.Unix(seconds, 0))
	made := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType:          page + "#make-release",
			ExternalParameters: external,
			ResolvedDependencies: []*intoto.ResourceDescriptor{
				{Uri: "git+" + repository, Digest: map[string]string{"gitCommit": env("commit")}},
				{Name: "go", Uri: "https://go.dev/dl/#" + env("GOTOOLCHAIN")},
			},
		},
		RunDetails: &provenance.RunDetails{
			Builder:  &provenance.Builder{Id: builder, Version: map[string]string{"go": env("GOTOOLCHAIN")}},
			Metadata: &provenance.BuildMetadata{InvocationId: env("INVOCATION_ID"), StartedOn: at, FinishedOn: at},
		},
	}
	if err := made.Validate(); err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(made)
	if err != nil {
		return nil, err
	}
	var fields structpb.Struct
	return &fields, protojson.Unmarshal(text, &fields)
}
