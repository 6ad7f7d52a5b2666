import type { Logger } from 'pino';
import type { Projection } from '../../projections/projection/projection.ts';
import { readLiveProcesses } from '../../store/ownership/live-processes.ts';
import { readAllRegistries } from '../../store/registry/all-registries.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { startPeriodicTask } from '../scheduling/periodic-task.ts';
import { answeringVersions } from '../versions/answering-versions.ts';
import type { Versions } from '../versions/versions.ts';

/** A declared read model that is no longer in the API of this process, because all versions that it declares are retired. */
export interface LostReadModel {
  readonly name: string;
  /** The highest version that this process declares. */
  readonly version: number;
  /** The live processes that answer for it with another version, for example `host:4711`. */
  readonly answeredBy: readonly string[];
}

/** The read models that this process answers for, and those it has lost. */
export interface ServedReadModels {
  /** Returns for each declared read model whether one of its versions answers here. */
  served(): ReadonlyMap<string, boolean>;
  lost(): readonly LostReadModel[];
  stop(): Promise<void>;
}

// The wait for a gateway with the next version is much longer: a deployment.
const lookMilliseconds = 2000;

/** Tracks which read models this process answers for, and logs each that it stops answering for. */
export function createServedReadModels(options: {
  readonly db: Queryable;
  readonly projections: readonly Projection[];
  readonly versions: Pick<Versions, 'current' | 'stateOf' | 'onChange'>;
  readonly logger: Logger;
}): ServedReadModels {
  const { db, projections, versions, logger } = options;
  const declared = Map.groupBy(projections, ({ name }) => name);
  let lost: readonly LostReadModel[] = [];
  let before = served();

  function served(): ReadonlyMap<string, boolean> {
    const { served: answering } = versions.current();
    return new Map([...declared.keys()].map((name) => [name, answering.get(name)?.active ?? false]));
  }

  function logChanges(): void {
    const now = served();
    for (const [name, answers] of now) {
      if (answers === before.get(name)) continue;
      if (answers) logger.info({ projection: name }, `this process answers for '${name}' again`);
      else logger.warn({ projection: name }, lossText(name));
    }
    before = now;
  }

  function lossText(name: string): string {
    const states = (declared.get(name) ?? []).map(({ id, version }) => `${id} is ${versions.stateOf(name, version)}`);
    const then = versions.current().served.has(name)
      ? `Its fields answer PROJECTION_NOT_READY until a declared version is active.`
      : `Its fields are no longer in the schema: deploy a program that declares an active version, or none, of '${name}'.`;
    return `this process no longer answers for '${name}': ${states.join(', ')}. ${then}`;
  }

  /** Finds read models without a version that could still become active: they do not come back in this process. */
  async function look(): Promise<void> {
    const gone = [...declared].filter(([name]) => !versions.current().served.has(name));
    if (gone.length === 0) return;
    const all = answeringVersions(await readAllRegistries(db), await readLiveProcesses(db));
    const answers = all.filter(({ version }) => version !== null);
    lost = gone.map(([name, ofName]) => ({
      name,
      version: Math.max(...ofName.map(({ version }) => version)),
      answeredBy: answers.filter((one) => one.name === name).flatMap(({ processes }) => processes),
    }));
  }

  const task = startPeriodicTask(lookMilliseconds, look, (error) =>
    logger.debug({ err: error }, 'the processes that answer for a lost read model could not be read; trying again'),
  );
  const unsubscribe = versions.onChange(() => {
    logChanges();
    task.soon();
  });
  return {
    served,
    lost: () => lost,
    stop() {
      unsubscribe();
      return task.stop();
    },
  };
}
