{{- /* The port that health and metrics are served at; 0 where nothing is served. */ -}}
{{- define "rebalancer.port" -}}
{{- $given := get (.Values.cmdOptions | default dict) "secure-port" -}}
{{- if eq (toString $given) "0" -}}0{{- else -}}{{- default 10258 $given | int -}}{{- end -}}
{{- end -}}

{{- /* How they are served: http or https. */ -}}
{{- define "rebalancer.scheme" -}}
{{- $options := .Values.cmdOptions | default dict -}}
{{- $asked := and (hasKey $options "insecure-http") (ne (toString (get $options "insecure-http")) "false") -}}
{{- if or $asked (has "--insecure-http" .Values.extraArgs) }}http{{ else }}https{{ end -}}
{{- end -}}

{{- /* Seconds until a run is ended: given, or nine tenths of the time between two runs. */ -}}
{{- define "rebalancer.activeDeadlineSeconds" -}}
{{- $minutes := regexFind "^\\*/[0-9]+ " (trim (default "" .Values.schedule)) | regexFind "[0-9]+" -}}
{{- if .Values.activeDeadlineSeconds -}}
{{- int .Values.activeDeadlineSeconds -}}
{{- else if eq (trim (default "" .Values.schedule)) "* * * * *" -}}
54
{{- else if and (eq .Values.kind "CronJob") $minutes -}}
{{- mul (int $minutes) 54 -}}
{{- else -}}
540
{{- end -}}
{{- end -}}

{{- /* No eviction later than this after the snapshot: five minutes, or as much as leaves a run time to end by itself. */ -}}
{{- define "rebalancer.deadline" -}}
{{- min 300 (div (mul (include "rebalancer.activeDeadlineSeconds" . | int) 2) 3) -}}
{{- end -}}

{{- define "rebalancer.args" -}}
- run
- --policy-config-file=/policy-dir/policy.yaml
{{- with include "rebalancer.schedulerConfig" . }}
- --scheduler-config={{ . }}
{{- end }}
{{- if eq .Values.kind "Deployment" }}
- --descheduling-interval={{ required "deschedulingInterval is needed with kind Deployment" .Values.deschedulingInterval }}
{{- with .Values.leaderElection }}
{{- if .enabled }}
- --leader-elect=true
{{- with .leaseDuration }}
- --leader-elect-lease-duration={{ . }}
{{- end }}
{{- with .renewDeadline }}
- --leader-elect-renew-deadline={{ . }}
{{- end }}
{{- with .retryPeriod }}
- --leader-elect-retry-period={{ . }}
{{- end }}
{{- with .resourceLock }}
- --leader-elect-resource-lock={{ . }}
{{- end }}
{{- end }}
{{- end }}
{{- else if not (hasKey (.Values.cmdOptions | default dict) "deadline") }}
- --deadline={{ include "rebalancer.deadline" . }}s
{{- end }}
{{- include "rebalancer.leaseArgs" . }}
{{- if include "rebalancer.dryRun" . }}
- --dry-run
{{- end }}
{{- with (.Values.pushgateway).url }}
- --pushgateway={{ . }}
{{- end }}
{{- range $key, $value := omit (.Values.cmdOptions | default dict) "dry-run" }}
{{- if kindIs "invalid" $value }}
- --{{ $key }}
{{- else }}
- {{ printf "--%s=%v" $key (kindIs "float64" $value | ternary (toJson $value) $value) | quote }}
{{- end }}
{{- end }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "rebalancer.leaseName" -}}
{{- default "rebalancer" (.Values.leaderElection).resourceName -}}
{{- end -}}

{{- /* resourceNamescape is how the descheduler's chart once spelt it. */ -}}
{{- define "rebalancer.leaseNamespace" -}}
{{- default "kube-system" (default (.Values.leaderElection).resourceNamespace (.Values.leaderElection).resourceNamescape) -}}
{{- end -}}

{{- define "rebalancer.leaseArgs" -}}
{{- $name := include "rebalancer.leaseName" . -}}
{{- $namespace := include "rebalancer.leaseNamespace" . -}}
{{- $elects := and (eq .Values.kind "Deployment") (.Values.leaderElection).enabled -}}
{{- if or $elects (ne $name "rebalancer") }}
- --leader-elect-resource-name={{ $name }}
{{- end }}
{{- if or $elects (ne $namespace "kube-system") }}
- --leader-elect-resource-namespace={{ $namespace }}
{{- end }}
{{- $memory := include "rebalancer.memoryName" . }}
{{- if and (ne $memory "kube-rebalancer-memory") (include "rebalancer.needs" . | fromYaml).trust }}
- --memory={{ $memory }}
{{- end }}
{{- end -}}

{{- define "rebalancer.probe" -}}
{{- $probe := deepCopy .probe -}}
{{- if and $probe.httpGet (eq (toString $probe.httpGet.port) "10258") -}}
{{- $_ := set $probe.httpGet "port" (int .port) -}}
{{- if eq .scheme "http" }}{{ $_ := set $probe.httpGet "scheme" "HTTP" }}{{ end -}}
{{- end -}}
{{- toYaml $probe -}}
{{- end -}}

{{- /* The pod template that all three kinds share. */ -}}
{{- define "rebalancer.podTemplate" -}}
{{- $namespace := include "rebalancer.namespace" . -}}
{{- $port := include "rebalancer.port" . | int -}}
{{- $scheme := include "rebalancer.scheme" . -}}
{{- $several := and (eq .Values.kind "Deployment") (gt (int .Values.replicas) 1) -}}
metadata:
  annotations:
    checksum/config: {{ print (include "rebalancer.policyText" .) (.Values.schedulerConfig).text | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  labels:
    {{- include "rebalancer.selectorLabels" . | nindent 4 }}
    {{- with .Values.commonLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- if not (kindIs "invalid" .Values.automountServiceAccountToken) }}
  automountServiceAccountToken: {{ .Values.automountServiceAccountToken }}
  {{- end }}
  serviceAccountName: {{ include "rebalancer.serviceAccountName" . }}
  {{- if include "rebalancer.steers" . }}
  # For the request in flight, and for taking soft taints off nodes.
  terminationGracePeriodSeconds: 90
  {{- end }}
  {{- with .Values.priorityClassName }}
  {{- if or (eq $namespace "kube-system") (not (hasPrefix "system-" .)) }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- end }}
  {{- if ne .Values.kind "Deployment" }}
  restartPolicy: Never
  {{- end }}
  {{- with .Values.podSecurityContext }}
  securityContext:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.affinity }}
  affinity:
    {{- toYaml .Values.affinity | nindent 4 }}
  {{- else if $several }}
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 100
          podAffinityTerm:
            topologyKey: kubernetes.io/hostname
            labelSelector:
              matchLabels:
                {{- include "rebalancer.selectorLabels" . | nindent 16 }}
  {{- end }}
  {{- if .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
  {{- else if $several }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: topology.kubernetes.io/zone
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "rebalancer.selectorLabels" . | nindent 10 }}
      {{- if semverCompare ">=1.27.0-0" .Capabilities.KubeVersion.Version }}
      matchLabelKeys: [pod-template-hash]
      {{- end }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.dnsConfig }}
  dnsConfig:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.initContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: {{ .Chart.Name }}
      image: {{ include "rebalancer.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      {{- with .Values.command }}
      command:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      args:
        {{- include "rebalancer.args" . | trim | nindent 8 }}
      {{- with .Values.extraEnv }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if $port }}
      {{- with .Values.ports }}
      ports:
        {{- range . }}
        {{- $own := eq (toString .containerPort) "10258" }}
        - {{ ternary (set (deepCopy .) "containerPort" $port) . $own | toYaml | indent 10 | trim }}
        {{- end }}
      {{- end }}
      {{- with .Values.livenessProbe }}
      livenessProbe:
        {{- include "rebalancer.probe" (dict "probe" . "port" $port "scheme" $scheme) | nindent 8 }}
      {{- end }}
      {{- if eq .Values.kind "Deployment" }}
      {{- with .Values.readinessProbe }}
      readinessProbe:
        {{- include "rebalancer.probe" (dict "probe" . "port" $port "scheme" $scheme) | nindent 8 }}
      {{- end }}
      {{- end }}
      {{- end }}
      {{- with .Values.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.securityContext }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - name: policy-volume
          mountPath: /policy-dir
          readOnly: true
        {{- if (.Values.schedulerConfig).configMapName }}
        - name: scheduler-volume
          mountPath: /scheduler-dir
          readOnly: true
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- if ne (toString .Values.automountServiceAccountToken) "true" }}
        {{- with .Values.extraServiceAccountVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- end }}
  volumes:
    - {{ include "rebalancer.policyVolume" . | indent 6 | trim }}
    {{- with (.Values.schedulerConfig).configMapName }}
    - name: scheduler-volume
      configMap:
        name: {{ . }}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- if ne (toString .Values.automountServiceAccountToken) "true" }}
    {{- with .Values.extraServiceAccountVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- end }}
{{- end -}}

{{- /* The Job that a CronJob makes, and that kind Job is. */ -}}
{{- define "rebalancer.jobSpec" -}}
# A run that fails is not repeated: a repetition would have fresh limits.
backoffLimit: 0
activeDeadlineSeconds: {{ include "rebalancer.activeDeadlineSeconds" . }}
{{- with .Values.ttlSecondsAfterFinished }}
ttlSecondsAfterFinished: {{ int . }}
{{- end }}
template:
  {{- include "rebalancer.podTemplate" . | nindent 2 }}
{{- end -}}
