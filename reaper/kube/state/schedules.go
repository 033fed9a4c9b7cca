package state

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Schedules returns the CronJobs of a namespace that start runs, by name. Those that are templates of Jobs for an
// outage are not among them.
func Schedules(ctx context.Context, client rest.Interface, namespace string, now time.Time) ([]report.Schedule, error) {
	var list batchv1.CronJobList
	if err := kube.Read(ctx, client, &list, "/apis/batch/v1/namespaces", namespace, "cronjobs"); err != nil {
		return nil, err
	}
	found := []report.Schedule{}
	for _, job := range list.Items {
		containers := job.Spec.JobTemplate.Spec.Template.Spec.Containers
		i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == "ip-reaper" })
		if i < 0 || job.Labels["app.kubernetes.io/component"] == "outage" {
			continue
		}
		s := report.Schedule{
			Name:        ipam.PodRef{Namespace: namespace, Name: job.Name}.String(),
			Cron:        job.Spec.Schedule,
			Suspended:   job.Spec.Suspend != nil && *job.Spec.Suspend,
			DryRun:      slices.Contains(containers[i].Args, "--dry-run"),
			Running:     len(job.Status.Active) > 0,
			LastRun:     timeOf(job.Status.LastScheduleTime),
			LastSuccess: timeOf(job.Status.LastSuccessfulTime),
		}
		if job.Spec.TimeZone != nil {
			s.TimeZone = *job.Spec.TimeZone
			s.Next = nextOf(s, now)
		}
		found = append(found, s)
	}
	slices.SortFunc(found, func(a, b report.Schedule) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}

// timeOf returns a time; nil if there is none.
func timeOf(t *metav1.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}

// nextOf returns when the next run starts, in a time zone that is named; nil if none does. The controller reads the
// schedule by the same library.
func nextOf(s report.Schedule, now time.Time) *time.Time {
	schedule, err := cron.ParseStandard("TZ=" + s.TimeZone + " " + s.Cron)
	if err != nil || s.Suspended || strings.Contains(s.Cron, "TZ=") {
		return nil
	}
	return new(schedule.Next(now).UTC())
}
