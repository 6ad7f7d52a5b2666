import { readVersion } from '../../store/registry/registry.ts';
import type { Queryable } from '../../store/statements/statement.ts';
import { versionName } from '../inspection/application.ts';
import { lifecycleOfStores } from '../stores/steps-of-stores.ts';
import { createLifecycle, type Lifecycle } from '../versions/lifecycle.ts';
import type { ActionDefinitions, ActionServices } from './action.ts';
import { refusalOf, rehearsalOf } from './rehearse.ts';
import { retirementOf } from './retirement.ts';
import { planRollback } from './rollback-plan.ts';
import { activeVersions, highestIfKnown, projectionBasis } from './version-basis.ts';

const rehearsedStep = { actor: 'preview', reason: 'preview' };

/** A life in which every step is rolled back, in whatever store. */
export function rehearsedLifecycleOf({ stores, find, config }: ActionServices): Lifecycle {
  const { readSchema } = config.database;
  return lifecycleOfStores(stores, find, ({ db }) => createLifecycle(rehearsalOf(db), readSchema, config));
}

async function answeringText(db: Queryable, name: string): Promise<string> {
  const highest = await highestIfKnown(db, name);
  if (highest === undefined) return 'Which version answers now is not known: a read store does not respond.';
  return highest ? `${name}@${highest.version} answers now.` : `No version of '${name}' answers now.`;
}

type Names = 'activate' | 'rollback' | 'retire' | 'pause' | 'resume';

export const versionActions: ActionDefinitions<Names> = {
  activate: {
    right: 'activate',
    async preview(services, { version: id, along, allowBreaking }) {
      const { name, version } = versionName(id);
      const options = { allowBreaking, along: along.map(versionName) };
      const all = [id, ...along];
      const names = [name, ...options.along.map((one) => one.name)];
      const refusal = await refusalOf(() =>
        rehearsedLifecycleOf(services).activate(name, version, rehearsedStep, options),
      );
      const breaking = (refusal?.fields.breaking ?? []) as readonly string[]; // `refuseBreaking` sets it
      return {
        of: id,
        summary: `Queries go to ${all.join(', ')} at once, in all processes that declare ${all.length === 1 ? 'it' : 'them'}.`,
        details: [...(await Promise.all(names.map((one) => answeringText(services.db, one)))), ...breaking],
        warnings: allowBreaking ? ['Clients that use what it removes will fail.'] : [],
        refusal: refusal?.message ?? null,
        overcomeBy: breaking.length > 0 ? ['allowBreaking'] : [],
        basis: await Promise.all(names.map((one) => projectionBasis(services.db, one))),
      };
    },
    async run(services, { version: id, along, allowBreaking }, step) {
      const { name, version } = versionName(id);
      await services.lifecycle.activate(name, version, step, { allowBreaking, along: along.map(versionName) });
      return { summary: `${[id, ...along].join(', ')} ${along.length === 0 ? 'is' : 'are'} active.`, version: id };
    },
  },
  rollback: {
    right: 'rollback',
    async preview(services, { projection: name, version }) {
      const { db, config } = services;
      const refusal = await refusalOf(async () => {
        await planRollback(db, config, name);
        await rehearsedLifecycleOf(services).rollback(name, rehearsedStep);
      });
      const [to, from] = (await activeVersions(db, name)).slice(-2);
      const other =
        from && version !== undefined && version !== from.version
          ? `${name}@${from.version} is the highest active version, and the one to roll back, not @${version}.`
          : null;
      const plan = refusal ? undefined : await planRollback(db, config, name);
      return {
        of: name,
        summary:
          from && to
            ? `${name}@${to.version} answers again, at once. ${name}@${from.version} stays current and ready.`
            : `The highest active version of '${name}' is taken out of service.`,
        warnings: plan?.isLeft
          ? [`No process maintains ${name}@${to?.version}: it is at position ${to?.checkpoint}.`]
          : [],
        refusal: refusal?.message ?? other,
        basis: await projectionBasis(db, name),
      };
    },
    async run(services, { projection }, step) {
      await planRollback(services.db, services.config, projection);
      const { from, to } = await services.lifecycle.rollback(projection, step);
      return {
        summary: `${projection}@${to} answers again. ${projection}@${from} stays current and ready.`,
        version: `${projection}@${to}`,
      };
    },
  },
  retire: {
    right: 'retire',
    async preview(services, { version: id, graceHours, force, allowLoss }) {
      const { name, version } = versionName(id);
      const refusal = await refusalOf(() =>
        rehearsedLifecycleOf(services).retire(name, version, rehearsedStep, graceHours * 3600),
      );
      const { answering, losing, ending } = await retirementOf(
        (await services.find.of(name, version)).db,
        name,
        version,
      );
      const textOf = (problem: string | null) => (problem === null ? [] : [`${id} ${problem}`]);
      const loses = [...textOf(losing), ...textOf(ending)];
      const lost = [...textOf(answering), ...loses];
      const unmeant = [
        ...(answering !== null && !force ? [{ input: 'force', text: textOf(answering).join() }] : []),
        ...(loses.length > 0 && !allowLoss
          ? [{ input: 'allowLoss', text: `${loses.join(' ')} Deploy the next version there first.` }]
          : []),
      ];
      return {
        of: id,
        summary: `The maintenance of ${id} ends. Its table is dropped in ${graceHours} h. A retired version can't come back.`,
        details: ['Its snapshots are dropped, too. A rebuild or a canary of it ends.'],
        warnings: lost,
        refusal: refusal?.message ?? (unmeant.length > 0 ? unmeant.map(({ text }) => text).join(' ') : null),
        overcomeBy: refusal ? [] : unmeant.map(({ input }) => input),
        basis: [await projectionBasis(services.db, name), lost],
      };
    },
    async run(services, { version: id, graceHours }, step) {
      const { name, version } = versionName(id);
      await services.lifecycle.retire(name, version, step, graceHours * 3600);
      return {
        summary: `${id} is retired; its table is dropped in ${graceHours} h. Remove its declaration.`,
        version: id,
      };
    },
  },
  pause: {
    right: 'pause',
    async preview(services, { version: id }) {
      const { name, version } = versionName(id);
      const { db } = services;
      // Not rehearsed: an inline version would leave the appends.
      const found = await readVersion((await services.find.of(name, version)).db, { name, version });
      const refusal = !found
        ? `${id} is not in the registry.`
        : found.state === 'retired'
          ? `${id} is retired: nobody maintains it.`
          : found.paused
            ? `${id} is paused already, since ${found.paused.since} by ${found.paused.by} (${found.paused.reason}).`
            : null;
      const answers = (await highestIfKnown(db, name))?.version === version;
      return {
        of: id,
        summary: `No process maintains ${id} until it is resumed, also across restarts.`,
        warnings: answers ? [`${id} answers clients: it goes on answering, from rows that grow stale.`] : [],
        refusal,
        basis: await projectionBasis(db, name),
      };
    },
    async run(services, { version: id }, step) {
      const { name, version } = versionName(id);
      await services.lifecycle.pause(name, version, step);
      return { summary: `${id} is paused.`, version: id };
    },
  },
  resume: {
    right: 'pause',
    async preview(services, { version: id }) {
      const { name, version } = versionName(id);
      const refusal = await refusalOf(() => rehearsedLifecycleOf(services).resume(name, version, rehearsedStep));
      return {
        of: id,
        summary: `Processes maintain ${id} again, and continue where it was paused.`,
        refusal: refusal?.message ?? null,
        basis: await projectionBasis(services.db, name),
      };
    },
    async run(services, { version: id }, step) {
      const { name, version } = versionName(id);
      await services.lifecycle.resume(name, version, step);
      return { summary: `${id} is resumed.`, version: id };
    },
  },
};
