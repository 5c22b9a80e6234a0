package shell

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rpcbench/rpcbench/internal/report"
)

// Step appends the tables of a summary, and what a gate has said, to the summary of a step of GitHub Actions. If there
// is one that can't be written, it returns a line that says so.
func Step(s report.Summary, said string) (warning string) {
	name := os.Getenv("GITHUB_STEP_SUMMARY")
	if name == "" {
		return ""
	}
	if err := step(name, s, said); err != nil {
		return fmt.Sprintf("Warning: the step has no summary: %s.\n", err)
	}
	return ""
}

func step(name string, s report.Summary, said string) error {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if s.Measured() {
		_, err = io.WriteString(file, s.Results(true).Markdown())
	}
	if counts := s.Counts(); counts != nil && err == nil {
		_, err = io.WriteString(file, "\n"+counts.Markdown())
	}
	if said != "" && err == nil {
		_, err = fmt.Fprintf(file, "\n```text\n%s```\n\n", said)
	}
	return errors.Join(err, file.Close())
}
