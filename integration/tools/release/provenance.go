package main

import (
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
)

const (
	repository  = "https://github.com/ip-reaper/ip-reaper"
	releasePage = repository + "/blob/main/docs/release.md"
)

// An object is one of JSON, whose fields are written in the order of their names.
type object = map[string]any

// writeProvenance says how the files in a folder were made: it writes provenance.intoto.json there, an
// in-toto statement with SLSA provenance v1. Every file in the folder is a subject. What it says comes
// from the environment of the steps of a release, and from BUILDER_ID and INVOCATION_ID, which a build
// service sets.
func writeProvenance(args []string, env func(string) string) error {
	if len(args) != 1 {
		return errors.New("usage: release provenance FOLDER")
	}
	files, err := subjects(args[0])
	if err != nil {
		return err
	}
	made, err := predicate(env)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(object{
		"_type": "https://in-toto.io/Statement/v1", "subject": files,
		"predicateType": "https://slsa.dev/provenance/v1", "predicate": made,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(args[0], "provenance.intoto.json"), append(text, '\n'), 0o644)
}

// subjects returns the files of the folder with their hashes, sorted by name.
func subjects(folder string) ([]object, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var files []object
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		files = append(files, object{"name": entry.Name(), "digest": object{"sha256": hex.EncodeToString(sum[:])}})
	}
	return files, nil
}

// predicate returns how the release was made, as https://slsa.dev/spec/v1.0/provenance has it. Its
// times are that of the commit: two builders agree on them.
func predicate(env func(string) string) (object, error) {
	seconds, err := strconv.ParseInt(env("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	builder := env("BUILDER_ID")
	if builder == "" {
		builder = releasePage + "#by-hand"
	}
	at := time.Unix(seconds, 0).UTC().Format(time.RFC3339)
	metadata := object{"startedOn": at, "finishedOn": at}
	if id := env("INVOCATION_ID"); id != "" {
		metadata["invocationId"] = id
	}
	return object{
		"buildDefinition": object{
			"buildType": releasePage + "#make-release",
			"externalParameters": object{
				"repository": repository, "version": env("version"), "platforms": strings.Fields(env("platforms")),
			},
			"resolvedDependencies": []object{
				{"uri": "git+" + repository, "digest": object{"gitCommit": env("commit")}},
				{"name": "go", "uri": "https://go.dev/dl/#" + env("GOTOOLCHAIN")},
			},
		},
		"runDetails": object{
			"builder":  object{"id": builder, "version": object{"go": env("GOTOOLCHAIN")}},
			"metadata": metadata,
		},
	}, nil
}
