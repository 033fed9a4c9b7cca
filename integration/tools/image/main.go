// Command image writes what a release has for a registry, without a daemon, as OCI layouts:
//
//	image chart ARCHIVE FOLDER
//	image release -name REPOSITORY:TAG -version VERSION -commit COMMIT -created SECONDS
//		-license FILE -notices FILE -layout FOLDER PROGRAM...
//
// The image of a release has an index of one image for each program. The
// platform of an image is the one that its program was built for. The digest of the index
// is printed. The same programs and flags give the same bytes on every machine.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	switch command {
	case "chart":
		return writeChart(args[1:])
	case "release":
		return writeRelease(args[1:], os.Stdout)
	default:
		return errors.New("usage: image chart|release ARGUMENTS")
	}
}

// writeRelease writes the layout that the arguments tell of, and prints the digest of its index.
func writeRelease(args []string, stdout io.Writer) error {
	var r release
	var created int64
	var folder string
	flags := flag.NewFlagSet("image release", flag.ContinueOnError)
	flags.StringVar(&r.name, "name", "", "repository and tag of the image")
	flags.StringVar(&r.version, "version", "", "version of the program")
	flags.StringVar(&r.commit, "commit", "", "commit of the program")
	flags.Int64Var(&created, "created", 0, "when the commit was made, in seconds since 1970")
	flags.StringVar(&r.license, "license", "", "file of the licence")
	flags.StringVar(&r.notices, "notices", "", "file of the licences and notices of others")
	flags.StringVar(&folder, "layout", "", "folder that is written, and must not be there")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var missing []error
	flags.VisitAll(func(f *flag.Flag) {
		if f.Value.String() == f.DefValue {
			missing = append(missing, fmt.Errorf("-%s is not given: it is the %s", f.Name, f.Usage))
		}
	})
	if flags.NArg() == 0 {
		missing = append(missing, errors.New("no program is given"))
	}
	if err := errors.Join(missing...); err != nil {
		return err
	}
	r.created = time.Unix(created, 0).UTC()

	index, err := r.index(flags.Args())
	if err != nil {
		return err
	}
	if err := r.write(index, folder); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, digest)
	return err
}
