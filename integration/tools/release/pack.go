package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// writeArchive writes what lies in a folder to an archive, which is compressed unless its name ends in
// .tar. The same files make the same bytes, whatever tar and gzip the machine has: files come sorted,
// belong to user 0, are as old as the epoch, and may be read by everybody.
func writeArchive(args []string, epoch string) error {
	if len(args) != 2 {
		return errors.New("usage: release pack ARCHIVE FOLDER")
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	archive, err := os.Create(args[0])
	if err != nil {
		return err
	}
	if filepath.Ext(args[0]) == ".tar" {
		return errors.Join(pack(archive, os.DirFS(args[1]), time.Unix(seconds, 0)), archive.Close())
	}
	zipped, err := gzip.NewWriterLevel(archive, gzip.BestCompression)
	if err != nil {
		return err
	}
	return errors.Join(pack(zipped, os.DirFS(args[1]), time.Unix(seconds, 0)), zipped.Close(), archive.Close())
}

// pack writes the folder's content with the given time.
func pack(to io.Writer, folder fs.FS, at time.Time) error {
	w := tar.NewWriter(to)
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		return packEntry(w, folder, name, entry, at)
	})
	return errors.Join(err, w.Close())
}

// packEntry writes one file or folder. Anything else would be unpacked as its kind allows, which
// is not the same on every machine.
func packEntry(w *tar.Writer, folder fs.FS, name string, entry fs.DirEntry, at time.Time) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: info.Size(), ModTime: at, Format: tar.FormatUSTAR}
	switch {
	case info.IsDir():
		header.Typeflag, header.Name, header.Mode, header.Size = tar.TypeDir, name+"/", 0o755, 0
		return w.WriteHeader(header)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is neither a file nor a folder", name)
	case info.Mode()&0o100 != 0:
		header.Mode = 0o755
	}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	file, err := folder.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was read
	_, err = io.Copy(w, file)
	return err
}
