{{- define "rebalancer.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "rebalancer.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- /* A CronJob's name leaves room for what the controller appends. */ -}}
{{- define "rebalancer.cronJobName" -}}
{{- include "rebalancer.fullname" . | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "rebalancer.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "rebalancer.serviceAccountName" -}}
{{- if (.Values.serviceAccount).create -}}
{{- default (include "rebalancer.fullname" .) (.Values.serviceAccount).name -}}
{{- else -}}
{{- default "default" (.Values.serviceAccount).name -}}
{{- end -}}
{{- end -}}

{{- /* The labels that selectors use; they must never change. */ -}}
{{- define "rebalancer.selectorLabels" -}}
app.kubernetes.io/name: {{ include "rebalancer.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "rebalancer.labels" -}}
{{ include "rebalancer.selectorLabels" . }}
{{ include "rebalancer.commonLabels" . }}
{{- end -}}

{{- /* The same two for what belongs to the Deployment of `mark`: no selector of the others finds it. */ -}}
{{- define "rebalancer.markSelectorLabels" -}}
app.kubernetes.io/name: {{ include "rebalancer.name" . | trunc 58 | trimSuffix "-" }}-mark
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "rebalancer.markLabels" -}}
{{ include "rebalancer.markSelectorLabels" . }}
{{ include "rebalancer.commonLabels" . }}
{{- end -}}

{{- /* What serves metrics, as a YAML list: each with the name of its objects, and which labels are its own. */ -}}
{{- define "rebalancer.servers" -}}
- {name: {{ include "rebalancer.fullname" . }}, labels: rebalancer.labels, selector: rebalancer.selectorLabels, loops: {{ eq .Values.kind "Deployment" }}}
{{- if (.Values.marking).enabled }}
- {name: {{ include "rebalancer.markName" . }}, labels: rebalancer.markLabels, selector: rebalancer.markSelectorLabels, loops: true}
{{- end -}}
{{- end -}}

{{- define "rebalancer.commonLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "rebalancer.image" -}}
{{- printf "%s:%s" (required "image.repository is needed: the name of your image of rebalancer" (.Values.image).repository) (default .Chart.AppVersion (.Values.image).tag) -}}
{{- end -}}

{{- define "rebalancer.markName" -}}
{{- include "rebalancer.fullname" . | trunc 58 | trimSuffix "-" }}-mark
{{- end -}}
