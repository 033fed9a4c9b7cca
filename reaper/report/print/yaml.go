package print

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// printYAML prints what printJSON prints, in the same order. A YAML library would sort the
// fields, turn large integers into floats, and hold all of the text.
func printYAML(w io.Writer, v view) error {
	read, write := io.Pipe()
	go func() { _ = write.CloseWithError(printJSON(write, v)) }()
	buffer := bufio.NewWriter(w)
	y := yamlPrinter{from: json.NewDecoder(read), to: printable.YAML(buffer)}
	y.from.UseNumber()
	y.value("", "")
	y.print("\n")
	return errors.Join(y.err, read.Close(), buffer.Flush())
}

// A yamlPrinter prints a JSON text as YAML, up to the first error.
type yamlPrinter struct {
	from *json.Decoder
	to   io.Writer
	err  error
}

// value prints the next value. A scalar follows the separator, and the lines of a list or a
// mapping have the indent.
func (y *yamlPrinter) value(separator, indent string) {
	token := y.next()
	open, nested := token.(json.Delim)
	switch {
	case !nested:
		y.print(separator, scalar(token))
		return
	case !y.from.More():
		y.print(separator, open, y.next())
		return
	}
	for i := 0; y.err == nil && y.from.More(); i++ {
		if open == '[' {
			y.print("\n", indent, "- ")
			y.value("", indent+"  ")
			continue
		}
		if i > 0 || separator != "" { // otherwise the key is on the line of a dash
			y.print("\n", indent)
		}
		y.print(scalar(y.next()), ":")
		y.value(" ", indent+"  ")
	}
	y.next() // the closing delimiter
}

func (y *yamlPrinter) next() (token json.Token) {
	if y.err == nil {
		token, y.err = y.from.Token()
	}
	return token
}

func (y *yamlPrinter) print(words ...any) {
	for _, word := range words {
		if y.err == nil {
			_, y.err = fmt.Fprint(y.to, word)
		}
	}
}

// scalar returns a value of one token. A quoted Go string is also a YAML string.
func scalar(token json.Token) string {
	switch token := token.(type) {
	case nil:
		return "null"
	case string:
		if !plainYAML.MatchString(token) || yamlWords.MatchString(token) {
			return strconv.Quote(token)
		}
	}
	return fmt.Sprint(token)
}

// A string is printed without quotes only if every parser reads it as a string. Some
// parsers read yes and off as booleans.
var (
	plainYAML = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9._/ -]*[A-Za-z0-9])?$`)
	yamlWords = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null)$`)
)
