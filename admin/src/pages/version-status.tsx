import { LagChart, Progress } from '../parts/chart.tsx';
import { Figures, Section } from '../parts/figures.tsx';
import { count, duration, number, Time } from '../parts/format.tsx';
import { Notice, ProcessorBadge } from '../parts/marks.tsx';
import { Table } from '../parts/table.tsx';
import { live } from '../server/overview.ts';
import { useStore } from '../server/store.ts';
import type { VersionDetail } from './version.tsx';

export function VersionStatus({ version }: { readonly version: VersionDetail }) {
  const { lags } = useStore(live);
  const older = version.lagTrend.map(({ at, lag }) => ({ at: Date.parse(at), lag: Number(lag) }));
  const last = older.at(-1)?.at ?? 0;
  const seen = (lags.get(version.id) ?? []).filter(({ at }) => at > last);
  return (
    <>
      <Section title="Progress">
        <Progress share={version.progress} label={`Progress of ${version.id}`} />
        <Figures
          items={[
            { name: 'Checkpoint', value: number(version.position), note: `head ${number(version.head)}` },
            {
              name: 'Behind',
              value: `${count(version.lagEvents)} events`,
              note: version.lagSeconds > 0 ? `the first is ${duration(version.lagSeconds)} old` : 'caught up',
            },
            { name: 'Rate', value: `${number(version.eventsPerSecond)} events/s` },
            { name: 'ETA', value: version.etaSeconds == null ? '–' : duration(version.etaSeconds) },
            { name: 'Owner', value: version.owner ?? 'nobody' },
            { name: 'Folded', value: number(version.eventsFolded), note: 'events' },
            { name: 'Skipped', value: number(version.eventsSkipped), note: `${number(version.retries)} retries` },
          ]}
        />
      </Section>
      <Section title="Lag">
        <LagChart points={[...older, ...seen]} />
      </Section>
      {version.rebuild && <RebuildStatus rebuild={version.rebuild} />}
      {version.partitions.length > 1 && (
        <Section title="Partitions">
          <Table
            caption={`Partitions of ${version.id}`}
            columns={[
              { title: 'Partition', isName: true, cell: (partition) => partition.number },
              { title: 'Processor', cell: ({ processor }) => <ProcessorBadge state={processor} /> },
              { title: 'Position', isNumber: true, cell: ({ position }) => number(position) },
              { title: 'Lag', isNumber: true, cell: ({ lag }) => number(lag) },
              { title: 'Owner', cell: ({ owner }) => owner ?? '–' },
              { title: 'Error', isText: true, cell: ({ error }) => error?.message ?? '–' },
            ]}
            items={version.partitions}
            keyOf={(partition) => String(partition.number)}
            empty="It has no partitions."
          />
        </Section>
      )}
      <LastVerification version={version} />
    </>
  );
}

function RebuildStatus({ rebuild }: { readonly rebuild: NonNullable<VersionDetail['rebuild']> }) {
  return (
    <Section title="Rebuild">
      {rebuild.error && (
        <Notice tone="bad" title="It has stopped.">
          {rebuild.error.message}
        </Notice>
      )}
      <Progress share={rebuild.progress} label="Progress of the rebuild" />
      <Figures
        items={[
          { name: 'Form', value: rebuild.form },
          {
            name: 'From',
            value: number(rebuild.startedAtPosition),
            note: rebuild.snapshot ? `snapshot ${rebuild.snapshot}` : undefined,
          },
          { name: 'At', value: number(rebuild.position) },
          { name: 'Rate', value: `${number(rebuild.eventsPerSecond)} events/s` },
          { name: 'ETA', value: rebuild.etaSeconds == null ? '–' : duration(rebuild.etaSeconds) },
          { name: 'Owner', value: rebuild.owner ?? 'nobody' },
          { name: 'Requested by', value: rebuild.requestedBy, note: rebuild.reason },
        ]}
      />
    </Section>
  );
}

function LastVerification({ version: { verification } }: { readonly version: VersionDetail }) {
  if (!verification) return null;
  const { kind, endedAt, rowsCompared, differences, position } = verification;
  return (
    <Section title="Last verification">
      <Figures
        items={[
          { name: 'Kind', value: kind },
          { name: 'Ended', value: <Time at={endedAt} /> },
          { name: 'Up to', value: number(position) },
          { name: 'Rows compared', value: number(rowsCompared) },
          { name: 'Differences', value: number(differences) },
        ]}
      />
      {verification.samples.length > 0 && <DifferenceTable samples={verification.samples} />}
    </Section>
  );
}

interface DifferenceTableProps {
  readonly samples: readonly { readonly key: string; readonly kind: string; readonly columns: readonly string[] }[];
}

export function DifferenceTable({ samples }: DifferenceTableProps) {
  return (
    <Table
      caption="Rows that differ from the log"
      columns={[
        { title: 'Row', isName: true, cell: ({ key }) => <code>{key}</code> },
        { title: 'How', cell: ({ kind }) => kind },
        { title: 'Columns', isText: true, cell: ({ columns }) => columns.join(', ') || '–' },
      ]}
      items={samples}
      keyOf={({ key }) => key}
      empty="No row differs."
    />
  );
}
