import type { Projection } from '../../projections/projection/projection.ts';
import { readTableFacts } from '../../store/browsing/table-facts.ts';
import { readLiveProcesses } from '../../store/ownership/live-processes.ts';
import type { Database } from '../../store/postgres/database.ts';
import { readVersion } from '../../store/registry/registry.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import type { WhichSnapshot } from '../../store/tables/table-snapshots.ts';
import { dbOfVersion, declaredVersionOf, versionName } from '../inspection/application.ts';
import { acceptRebuild, cancelRebuild, expectRebuildable } from '../rebuilds/rebuild.ts';
import { restoreSnapshot } from '../rebuilds/rebuild-in-place.ts';
import { createRebuilds } from '../rebuilds/rebuild-requests.ts';
import { dropSnapshot, expectSnapshot, listSnapshots, takeSnapshot } from '../rebuilds/table-snapshots.ts';
import type { ActionDefinitions, ActionInputs } from './action.ts';
import { refusalOf, rehearsalOf } from './rehearse.ts';
import { highestIfKnown, projectionBasis } from './version-basis.ts';

const rehearsedStep = { actor: 'preview', reason: 'preview' };

/** Who carries out the rebuild of a version. A rebuild that no running process can do waits in silence otherwise. */
export async function whoRebuilds(
  db: Queryable,
  id: string,
  { inPlace, isRequested }: { readonly inPlace: boolean; readonly isRequested: boolean },
): Promise<string> {
  const processes = await readLiveProcesses(db);
  const where = inPlace ? ' in place' : '';
  return processes.some(({ role, versions }) => role !== 'gateway' && versions.includes(id))
    ? `${id} ${isRequested ? 'is being' : 'will be'} rebuilt${where} by the process that maintains it.`
    : `No running process maintains ${id}. Its rebuild${where} ${isRequested ? 'is' : 'will be'} requested, and begins when one starts.`;
}

function startOf({ fromSnapshot, fromPosition }: ActionInputs['rebuild']): WhichSnapshot | undefined {
  if (fromSnapshot !== undefined) return { id: fromSnapshot };
  return fromPosition === undefined ? undefined : { upTo: fromPosition };
}

/** Checks like a rebuild, which creates its table after that. */
async function rehearseRebuild(
  db: Database,
  projection: Projection,
  inPlace: boolean,
  from: WhichSnapshot | undefined,
) {
  return db.transaction(async (tx) => {
    await expectRebuildable(tx, projection, inPlace ? 'in place' : 'beside');
    return from && expectSnapshot(tx, projection, from);
  });
}

async function sizeText(db: Queryable, name: string, version: number): Promise<string[]> {
  const table = await readTableFacts(db, name, version);
  return table
    ? [`Its table has about ${table.rows} rows in ${table.bytes + table.indexBytes} bytes, indexes included.`]
    : [];
}

type Names = 'rebuild' | 'cancelRebuild' | 'acceptRebuild' | 'takeSnapshot' | 'restoreSnapshot' | 'dropSnapshot';

export const rebuildActions: ActionDefinitions<Names> = {
  rebuild: {
    right: 'rebuild',
    async preview(services, input) {
      const { config } = services;
      const { version: id, inPlace } = input;
      const db = await dbOfVersion(services, id);
      const projection = declaredVersionOf(config, id);
      const { name, version } = projection;
      const refusal = await refusalOf(() => rehearseRebuild(db, projection, inPlace, startOf(input)));
      const found = await readVersion(db, { name, version });
      const answers = (await highestIfKnown(db, name))?.version === version;
      const otherCode = found !== undefined && found.codeFingerprint !== projection.codeFingerprint;
      return {
        of: id,
        summary: inPlace
          ? `The table of ${id} is emptied and built again. The version is not served meanwhile.`
          : `A new table of ${id} is built beside the old one, which serves meanwhile. The new one takes over at the end.`,
        details: [
          await whoRebuilds(db, id, { inPlace, isRequested: false }),
          ...(await sizeText(db, name, version)),
          ...(otherCode ? [`The code of ${id} in this process differs from the code that built its table.`] : []),
        ],
        warnings:
          inPlace && answers
            ? [`${id} answers clients. Until it has caught up, the version below answers, or nothing does.`]
            : [],
        refusal: refusal?.message ?? null,
        basis: [await projectionBasis(db, name), input.fromSnapshot ?? null],
      };
    },
    async run(services, input, step) {
      const { log, config } = services;
      const { version: id, inPlace } = input;
      const db = await dbOfVersion(services, id);
      const { readSchema } = config.database;
      const rebuilds = createRebuilds({ dbOf: () => db, log, readSchema, projections: config.projections });
      const from = startOf(input);
      await rebuilds.request(id, { ...step, inPlace, ...(from === undefined ? {} : { from }) });
      return { summary: await whoRebuilds(db, id, { inPlace, isRequested: true }), version: id };
    },
  },
  cancelRebuild: {
    right: 'rebuild',
    async preview(services, { version: id }) {
      const { config } = services;
      const db = await dbOfVersion(services, id);
      const { name, version } = versionName(id);
      const { readSchema } = config.database;
      const refusal = await refusalOf(() => cancelRebuild(rehearsalOf(db), name, version, readSchema, rehearsedStep));
      return {
        of: id,
        summary: `The rebuild of ${id} ends, and its new table is dropped. The old table goes on serving.`,
        refusal: refusal?.message ?? null,
        basis: await projectionBasis(db, name),
      };
    },
    async run(services, { version: id }, step) {
      const { config } = services;
      const db = await dbOfVersion(services, id);
      const { name, version } = versionName(id);
      await cancelRebuild(db, name, version, config.database.readSchema, step);
      return { summary: `The rebuild of ${id} is cancelled.`, version: id };
    },
  },
  acceptRebuild: {
    right: 'rebuild',
    async preview(services, { version: id }) {
      const db = await dbOfVersion(services, id);
      const { name, version } = versionName(id);
      const refusal = await refusalOf(() => acceptRebuild(rehearsalOf(db), name, version, rehearsedStep));
      return {
        of: id,
        summary: `The new table of ${id} takes over, although it has dead letters that the old one does not have.`,
        refusal: refusal?.message ?? null,
        basis: await projectionBasis(db, name),
      };
    },
    async run(services, { version: id }, step) {
      const db = await dbOfVersion(services, id);
      const { name, version } = versionName(id);
      await acceptRebuild(db, name, version, step);
      return { summary: `The new table of ${id} takes over with its dead letters.`, version: id };
    },
  },
  takeSnapshot: {
    right: 'snapshot',
    async preview(services, { version: id }) {
      const db = await dbOfVersion(services, id);
      const { name, version } = versionName(id);
      const found = await readVersion(db, { name, version });
      const refusal = !found
        ? `${id} is not in the registry.`
        : found.state === 'retired' || found.state === 'failed'
          ? `${id} is ${found.state}; only a version that is maintained can have a snapshot taken.`
          : null;
      return {
        of: id,
        summary: `The table of ${id} is copied with its position. Nothing is interrupted.`,
        details: await sizeText(db, name, version),
        refusal,
        basis: await projectionBasis(db, name),
      };
    },
    async run(services, { version: id }, step) {
      const { config } = services;
      const db = await dbOfVersion(services, id);
      const taken = await takeSnapshot({ db, readSchema: config.database.readSchema, ...versionName(id) }, step);
      return {
        summary: `Snapshot ${taken.id} of ${id} has ${taken.rows} rows, at position ${taken.checkpoint}.`,
        version: id,
      };
    },
  },
  restoreSnapshot: {
    right: 'snapshot',
    async preview(services, { version: id, snapshot }) {
      const { config } = services;
      const db = await dbOfVersion(services, id);
      const projection = declaredVersionOf(config, id);
      const refusal = await refusalOf(() => rehearseRebuild(db, projection, false, { id: snapshot }));
      const taken = (await listSnapshots(db, projection.name, projection.version)).find((one) => one.id === snapshot);
      return {
        of: id,
        summary: `${id} serves the rows of snapshot ${snapshot} at once, as they were then, and catches up from there.`,
        details: taken
          ? [`It was taken at ${taken.takenAt}, at position ${taken.checkpoint}, with ${taken.rows} rows.`]
          : [],
        warnings: [`Until it has caught up, ${id} shows old rows.`],
        refusal: refusal?.message ?? null,
        basis: [await projectionBasis(db, projection.name), taken?.takenAt ?? null],
      };
    },
    async run(services, { version: id, snapshot }, step) {
      const { log, config } = services;
      const db = await dbOfVersion(services, id);
      const projection = declaredVersionOf(config, id);
      const { readSchema } = config.database;
      const restored = await restoreSnapshot({ db, log, readSchema, projection }, step, { id: snapshot });
      return {
        summary: `${id} serves snapshot ${restored.id} at position ${restored.checkpoint}, and catches up from there.`,
        version: id,
      };
    },
  },
  dropSnapshot: {
    right: 'snapshot',
    async preview(services, { version: id, snapshot }) {
      const db = await dbOfVersion(services, id);
      const { name, version } = versionName(id);
      const refusal = await refusalOf(() => dropSnapshot(rehearsalOf(db), name, version, snapshot, rehearsedStep));
      return {
        of: id,
        summary: `Snapshot ${snapshot} of ${id} is dropped. A rebuild can't start from it any more.`,
        refusal: refusal?.message ?? null,
        basis: refusal === null,
      };
    },
    async run(services, { version: id, snapshot }, step) {
      const db = await dbOfVersion(services, id);
      const { name, version } = versionName(id);
      await dropSnapshot(db, name, version, snapshot, step);
      return { summary: `Snapshot ${snapshot} of ${id} is dropped.`, version: id };
    },
  },
};
