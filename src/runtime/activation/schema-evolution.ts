import { RefoldError } from '../../errors.ts';
import type { Database } from '../../store/postgres/database.ts';
import { answering, readAllRegistries, readVersionsOf } from '../../store/registry/all-registries.ts';
import { highestActive } from '../../store/registry/definitions.ts';
import { type FieldUsage, readUsage, recordedDays, type UsageQuery } from '../../store/registry/field-usage.ts';
import { type RegisteredVersion, readVersion } from '../../store/registry/registry.ts';
import { endShadow, readShadows, type Shadow, writeShadow } from '../../store/registry/shadows.ts';
import { recordOperation } from '../../store/registry/transitions.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { type UsedChanges, usualDays, withUsage } from '../schema-changes/change-usage.ts';
import { changesBetween, type SchemaDeclarations } from '../schema-changes/schema-changes.ts';
import { expectVersion, refuseDistributed, refused, type TransitionReason } from '../versions/expect-version.ts';

/** How a projection moves from one version to the next while clients use it. */
export interface SchemaEvolution {
  /**
   * Returns what changes for clients if a version answers in place of another (by default the highest active one below it), and which clients used
   * the breaking parts in the last 30 days.
   *
   * @throws RefoldError `INVALID_TRANSITION` if there is none, or if the definition of one of them is unknown here
   */
  changes(name: string, version: number, than?: number): Promise<UsedChanges>;
  /** Like {@link changes}, for every declared version that could become active above an answering one. */
  pendingChanges(): Promise<readonly (UsedChanges & { readonly version: string })[]>;
  /**
   * Makes all gateways also execute about one of so many live queries on a ready version, and compare the responses. A new start forgets old results.
   *
   * @throws RefoldError `INVALID_TRANSITION` if the version is not ready
   */
  startShadow(
    name: string,
    version: number,
    options: { readonly oneOf: number },
    step: TransitionReason,
  ): Promise<void>;
  /** Ends the comparison and keeps its results. @throws RefoldError `INVALID_TRANSITION` if none is running */
  stopShadow(name: string, version: number, step: TransitionReason): Promise<void>;
  /** Returns the results of all comparisons. The examples contain data from responses to clients. */
  shadows(): Promise<readonly Shadow[]>;
  /** Returns which fields clients used, as recorded by all gateways. Counts of the last ten seconds may be missing. */
  usage(query?: Partial<UsageQuery>): Promise<RecordedUsage>;
}

export interface RecordedUsage {
  /** For how many days all gateways have recorded usage; null if one of them does not, or none has started. */
  readonly recordedDays: number | null;
  /** Ordered by path, and by the number of requests of each client, descending. */
  readonly fields: readonly FieldUsage[];
}

export interface SchemaEvolutionOptions {
  /** The database of the log. */
  readonly db: Database;
  /** The database of a version. @default `db` */
  readonly dbOf?: (name: string, version: number) => Promise<Database>;
  readonly declarations: SchemaDeclarations;
  /** Writes the counts of this process. */
  readonly flush?: () => Promise<void> | undefined;
}

export function createSchemaEvolution(options: SchemaEvolutionOptions): SchemaEvolution {
  const { db, dbOf = async () => db, declarations, flush = () => undefined } = options;

  async function changes(name: string, version: number, than?: number): Promise<UsedChanges> {
    await flush();
    const older = than ?? activeBelow(await readVersionsOf(db, name), name, version);
    if (older === undefined)
      throw new RefoldError('INVALID_TRANSITION', `No version below ${name}@${version} is active; name two versions.`);
    const found = await changesBetween(db, declarations, name, older, version);
    if (found) return withUsage(db, name, found);
    const known = declarations.projections.map(({ id }) => id).join(', ');
    throw new RefoldError(
      'INVALID_TRANSITION',
      `${name}@${older} and ${name}@${version} can't be compared: the application declares ${known || 'no projection'}, and the registry knows no other.`,
    );
  }

  return {
    changes,
    async pendingChanges() {
      const registered = await readAllRegistries(db);
      const pending = [];
      for (const { id, name, version } of declarations.projections) {
        const state = registered.find((entry) => entry.name === name && entry.version === version)?.state;
        const older = activeBelow(registered, name, version);
        if (older === undefined || state === 'active' || state === 'retired') continue;
        pending.push({ version: id, ...(await changes(name, version, older)) });
      }
      return pending;
    },
    async startShadow(name, version, { oneOf }, step) {
      if (!Number.isInteger(oneOf) || oneOf < 1)
        throw refused(
          name,
          version,
          `is compared for one of so many queries, a whole number from 1 on, found ${oneOf}.`,
        );
      await (await dbOf(name, version)).transaction(async (tx) => {
        const { state, heldReason } = await expectVersion(tx, name, version);
        if (state !== 'ready') throw refused(name, version, `is ${state}; only a ready version can be compared.`);
        const found = await readVersion(tx, { name, version });
        if (found) refuseDistributed(tx, found, 'a comparison of answers');
        await refuseOtherStore(tx, name, version);
        await writeShadow(tx, name, version, oneOf);
        const reason = `compared for one of ${oneOf} queries: ${step.reason}`;
        await recordOperation(tx, { name, version, state, heldReason }, { actor: step.actor, reason });
      });
    },
    async stopShadow(name, version, step) {
      await (await dbOf(name, version)).transaction(async (tx) => {
        const { state, heldReason } = await expectVersion(tx, name, version);
        if (!(await endShadow(tx, name, version))) throw refused(name, version, 'is not being compared.');
        const reason = `compared no more: ${step.reason}`;
        await recordOperation(tx, { name, version, state, heldReason }, { actor: step.actor, reason });
      });
    },
    shadows: async () =>
      (await Promise.all([db, ...(db.elsewhere?.others() ?? [])].map((one) => readShadows(one)))).flat(),
    async usage({ days = usualDays, ...query } = {}) {
      await flush();
      return { recordedDays: await recordedDays(db), fields: await readUsage(db, { days, ...query }) };
    },
  };
}

/** Answers are compared at one position, in one snapshot. */
async function refuseOtherStore(tx: Queryable, name: string, version: number): Promise<void> {
  const [here, anywhere] = [await highestActive(tx, name), await answering(tx, name)];
  if (here?.version === anywhere?.version) return;
  throw refused(
    name,
    version,
    `can't be compared with ${name}@${anywhere?.version}, which is in another read store: the two are never read at one position.`,
  );
}

/** Also undefined if a higher version answers, because then nothing would change for clients. */
function activeBelow(registered: readonly RegisteredVersion[], name: string, version: number): number | undefined {
  const highest = registered.findLast((entry) => entry.name === name && entry.state === 'active');
  return highest && highest.version < version ? highest.version : undefined;
}
