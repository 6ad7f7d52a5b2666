import { hiddenText } from '../../projections/declaration/hidden-values.ts';
import { actionsOfVersion } from '../../runtime/actions/possible-actions.ts';
import { boundedCount } from '../../runtime/inspection/application.ts';
import { etaOf, type InspectedVersion } from '../../runtime/inspection/overview.ts';
import { canaryText } from '../../runtime/versions/canary-steps.ts';
import { readPins } from '../../store/browsing/browse-usage.ts';
import { readTableFacts } from '../../store/browsing/table-facts.ts';
import { uncheckedText } from '../../store/registry/inline-versions.ts';
import type { TypeResolvers } from '../schema/resolver-types.ts';
import type {
  VersionHistoryArgs,
  VersionLagTrendArgs,
  VersionPinsArgs,
  VersionRunsArgs,
} from '../schema/sdl.generated.ts';
import { auditPage } from './audit.ts';
import { daysOf } from './cursors.ts';
import {
  builtByThisCode,
  columnsOf,
  lagTrendOf,
  runsOf,
  shadowOf,
  snapshotsOf,
  surroundingsOf,
} from './version-details.ts';

/** 0 to 1. */
function shareOf(done: bigint, total: bigint): number {
  return total <= 0n ? 1 : Math.min(1, Math.max(0, Number(done) / Number(total)));
}

/** Its pace is that of the last minute. It may have stopped since. */
function isMoving({ state, paused, error }: InspectedVersion): boolean {
  return state !== 'retired' && paused === null && error === null;
}

const noFigures = { operations: 0, errors: 0, otherOperations: 0, otherErrors: 0 };

function canaryOf({ canary, canaryFigures }: InspectedVersion) {
  if (!canary) return null;
  const { percent, header } = canary;
  return {
    ...{ percent, header: header?.name, headerValue: header?.value, text: canaryText(canary) },
    ...noFigures,
    ...canaryFigures,
  };
}

function rebuildOf({ rebuild, head, rebuildPace, eventsPerSecond, pace }: InspectedVersion) {
  if (!rebuild) return null;
  const { checkpoint, startedAtPosition, form } = rebuild;
  return {
    ...rebuild,
    position: checkpoint,
    snapshot: rebuild.snapshotId,
    progress: shareOf(checkpoint - startedAtPosition, head - startedAtPosition),
    eventsPerSecond: form === 'beside' ? rebuildPace.eventsPerSecond : eventsPerSecond,
    etaSeconds: etaOf(head - checkpoint, form === 'beside' ? rebuildPace.positionsPerSecond : pace),
  };
}

export const versionTypes = {
  Version: {
    projection: ({ name }) => name,
    number: ({ version }) => version,
    isDeclared: ({ declared }) => declared !== undefined,
    builtByThisCode: (one, _, { services }) => builtByThisCode(services.application, one),
    unchecked: (one) => uncheckedText(one)[0],
    actions: async (one, _, { services }) =>
      actionsOfVersion(one, await surroundingsOf(services.application, await services.overview.read(), one)),
    lagEvents: ({ lagEvents, lagEventsExact }) => ({ value: Number(lagEvents), isExact: lagEventsExact }),
    progress: ({ position, head, startsAfter }) => shareOf(position - (startsAfter ?? 0n), head - (startsAfter ?? 0n)),
    etaSeconds: (one) => (one.lagEvents === 0n || !isMoving(one) ? null : etaOf(one.lag, one.pace)),
    lagTrend: (one, args: VersionLagTrendArgs, { services }) => lagTrendOf(services.application, one, args),
    deadLetters: ({ deadLetters }) => boundedCount(deadLetters),
    canary: canaryOf,
    shadow: (one, _, { services }) => shadowOf(services.application, one),
    rebuild: rebuildOf,
    history: ({ name, version }, page: VersionHistoryArgs, { services }) =>
      auditPage(services.application, { projection: name, version }, page),
    runs: (one, page: VersionRunsArgs, { services }) => runsOf(services.application, one, page),
    snapshots: (one, _, { services }) => snapshotsOf(services.application, one),
    table: (one, _, { services }) => readTableFacts(services.application.stores.of(one).db, one.name, one.version),
    columns: columnsOf,
    keyColumns: ({ declared }) => declared?.keyColumns ?? [],
    // Which fields clients use is with the log, whatever store has the version.
    pins: ({ id }, { days }: VersionPinsArgs, { services }) => readPins(services.application.db, id, daysOf(days)),
  },
  Partition: {
    number: ({ partition }) => partition,
  },
  ShadowExample: {
    older: ({ older }, _, { caller }) => (caller.rights.has('data') ? older : null),
    newer: ({ newer }, _, { caller }) => (caller.rights.has('data') ? newer : null),
  },
  Difference: {
    key: ({ key }, _, { caller }) => (caller.rights.has('data') ? key : hiddenText),
  },
} satisfies Partial<TypeResolvers>;
