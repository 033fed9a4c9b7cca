{{/*
The fields that both kinds of CronJobs share, and their jobTemplate. Takes root and
account; args, a list of further arguments of the program; deadline, retries, and final,
the exit codes that are not tried again.
*/}}
{{- define "ip-reaper.cronjob" -}}
{{- $values := .root.Values -}}
timeZone: {{ $values.timeZone | quote }}
# A Job ends only when its pod is gone. If the pod's node has died, the Job blocks the next
# start until the node is back, deleted or tainted out-of-service, or the pod is
# force-deleted.
concurrencyPolicy: Forbid
startingDeadlineSeconds: {{ $values.startingDeadlineSeconds }}
successfulJobsHistoryLimit: {{ $values.successfulJobsHistoryLimit }}
failedJobsHistoryLimit: {{ $values.failedJobsHistoryLimit }}
jobTemplate:
  metadata:
    labels:
      {{- include "ip-reaper.jobLabels" . | nindent 6 }}
  spec:
    # Longer than --timeout, so that a run ends by itself and reports.
    activeDeadlineSeconds: {{ .deadline }}
    backoffLimit: {{ .retries }}
    ttlSecondsAfterFinished: {{ $values.ttlSecondsAfterFinished }}
    podFailurePolicy:
      rules:
      # An eviction or a preemption is not a failure of the run.
      - action: Ignore
        onPodConditions:
        - type: DisruptionTarget
          status: "True"
      # A retry would fail in the same way.
      - action: FailJob
        onExitCodes:
          containerName: ip-reaper
          operator: In
          values: {{ .final }}
    template:
      metadata:
        labels:
          {{- merge (include "ip-reaper.jobLabels" . | fromYaml) $values.podLabels | toYaml | nindent 10 }}
        {{- with $values.podAnnotations }}
        annotations:
          {{- toYaml . | nindent 10 }}
        {{- end }}
      spec:
        {{- include "ip-reaper.pod" . | nindent 8 }}
{{- end }}
