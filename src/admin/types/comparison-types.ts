import { jsonKey } from '../../runtime/inspection/rows.ts';
import type { VersionDiff as Diff } from '../../runtime/verification/diff.ts';
import type { Verification as Result } from '../../runtime/verification/verify.ts';
import type { PayloadVerification, PayloadProblem as Problem } from '../../runtime/verification/verify-payloads.ts';
import { builder } from './builder.ts';
import { Difference } from './version-parts.ts';

export const VerificationResult = builder.objectRef<Result>('VerificationResult');
VerificationResult.implement({
  fields: (t) => ({
    position: t.expose('position', { type: 'BigInt' }),
    rowsCompared: t.expose('rowsCompared', { type: 'BigInt' }),
    differences: t.expose('differences', { type: 'BigInt' }),
    samples: t.field({
      type: [Difference],
      description: 'The first differences, at most 20.',
      resolve: ({ samples }) => [...samples],
    }),
  }),
});

export const VerificationProgress = builder.objectRef<{
  readonly position: bigint;
  readonly of: bigint;
  readonly result: Result | null;
}>('VerificationProgress');
VerificationProgress.implement({
  fields: (t) => ({
    position: t.expose('position', { type: 'BigInt' }),
    of: t.expose('of', { type: 'BigInt' }),
    result: t.expose('result', { type: VerificationResult, nullable: true, description: 'Null until it has ended.' }),
  }),
});

const PayloadProblem = builder.objectRef<Problem>('PayloadProblem');
PayloadProblem.implement({
  fields: (t) => ({
    family: t.exposeString('family'),
    type: t.exposeString('type'),
    payloadVersion: t.exposeInt('payloadVersion'),
    position: t.expose('position', { type: 'BigInt' }),
    streamId: t.exposeString('streamId'),
    problem: t.exposeString('problem'),
  }),
});

const PayloadResult = builder.objectRef<PayloadVerification>('PayloadVerification');
PayloadResult.implement({
  fields: (t) => ({
    position: t.expose('position', { type: 'BigInt', description: 'All events up to here were read.' }),
    events: t.exposeInt('events'),
    problems: t.exposeInt('problems'),
    samples: t.field({
      type: [PayloadProblem],
      description: 'The first problems, at most 1,000.',
      resolve: ({ samples }) => [...samples],
    }),
  }),
});

export const PayloadVerificationProgress = builder.objectRef<{
  readonly position: bigint;
  readonly of: bigint;
  readonly result: PayloadVerification | null;
}>('PayloadVerificationProgress');
PayloadVerificationProgress.implement({
  fields: (t) => ({
    position: t.expose('position', { type: 'BigInt' }),
    of: t.expose('of', { type: 'BigInt' }),
    result: t.expose('result', { type: PayloadResult, nullable: true, description: 'Null until it has ended.' }),
  }),
});

export const ColumnDiff = builder.objectRef<{ readonly name: string; readonly rows: number }>('ColumnDiff');
ColumnDiff.implement({
  fields: (t) => ({
    name: t.expose('name', { type: 'String' }),
    rows: t.expose('rows', { type: 'BigInt', description: 'Rows in which it differs.' }),
  }),
});

export const RowDiff = builder.objectRef<Diff['samples'][number]>('RowDiff');
RowDiff.implement({
  fields: (t) => ({
    key: t.field({ type: 'JSON', resolve: ({ key }) => jsonKey(key) }),
    older: t.expose('older', { type: 'JSON', nullable: true }),
    newer: t.expose('newer', { type: 'JSON', nullable: true }),
  }),
});

export const VersionDiff = builder.objectRef<{
  readonly older: string;
  readonly newer: string;
  readonly partial: string[];
  readonly diff: Diff;
}>('VersionDiff');
VersionDiff.implement({
  fields: (t) => ({
    older: t.expose('older', { type: 'ID' }),
    newer: t.expose('newer', { type: 'ID' }),
    partial: t.expose('partial', {
      type: ['String'],
      description: 'Sentences about the versions that hold only a part of the log.',
    }),
    position: t.field({ type: 'BigInt', resolve: ({ diff }) => diff.position }),
    rows: t.field({ type: 'BigInt', resolve: ({ diff }) => diff.rows }),
    onlyOlder: t.field({ type: 'BigInt', resolve: ({ diff }) => diff.onlyOlder }),
    onlyNewer: t.field({ type: 'BigInt', resolve: ({ diff }) => diff.onlyNewer }),
    columns: t.field({
      type: [ColumnDiff],
      resolve: ({ diff }) => Object.entries(diff.columns).map(([name, rows]) => ({ name, rows })),
    }),
    samples: t.field({
      type: [RowDiff],
      description: 'The first rows that differ. Empty without the right `data`.',
      resolve: ({ diff }, _args, { caller }) => (caller.rights.has('data') ? [...diff.samples] : []),
    }),
  }),
});
