import type { Config } from '../../config/define-config.ts';
import type { Database } from '../../store/postgres/database.ts';
import { createSchemaEvolution, type SchemaEvolution } from '../activation/schema-evolution.ts';
import { versionName } from '../inspection/application.ts';
import { canaryText } from '../versions/canary-steps.ts';
import { createLifecycle } from '../versions/lifecycle.ts';
import type { ActionDefinitions } from './action.ts';
import { refusalOf, rehearsalOf } from './rehearse.ts';
import { lifecycleOf } from './version-actions.ts';
import { activeVersions, projectionBasis } from './version-basis.ts';

const rehearsedStep = { actor: 'preview', reason: 'preview' };

type Names = 'startCanary' | 'endCanary' | 'startShadow' | 'stopShadow';

export const rolloutActions: ActionDefinitions<Names> = {
  startCanary: {
    right: 'canary',
    async preview({ db, config }, { version: id, percent, header, allowBreaking }) {
      const { name, version } = versionName(id);
      const rule = { percent, header };
      const lifecycle = createLifecycle(rehearsalOf(db), config.database.readSchema, config);
      const refusal = await refusalOf(() =>
        lifecycle.startCanary(name, version, rule, rehearsedStep, { allowBreaking }),
      );
      const breaking = (refusal?.fields.breaking ?? []) as readonly string[]; // `refuseBreaking` sets it
      const active = (await activeVersions([db], name)).at(-1);
      return {
        of: id,
        summary: `${id} answers ${canaryText(rule)} of the clients, in all processes, until it is active or the canary ends.`,
        details: [...(active ? [`${name}@${active.version} answers the others.`] : []), ...breaking],
        warnings: allowBreaking ? ['Clients that use what it removes will fail while it answers them.'] : [],
        refusal: refusal?.message ?? null,
        overcomeBy: breaking.length > 0 ? ['allowBreaking'] : [],
        basis: await projectionBasis(db, name),
      };
    },
    async run(services, { version: id, percent, header, allowBreaking }, step) {
      const { name, version } = versionName(id);
      await lifecycleOf(services).startCanary(name, version, { percent, header }, step, { allowBreaking });
      return { summary: `${id} answers ${canaryText({ percent, header })} of the clients.`, version: id };
    },
  },
  endCanary: {
    right: 'canary',
    async preview({ db, config }, { projection }) {
      const lifecycle = createLifecycle(rehearsalOf(db), config.database.readSchema, config);
      const refusal = await refusalOf(() => lifecycle.endCanary(projection, rehearsedStep));
      return {
        of: projection,
        summary: `The active version of '${projection}' answers all clients again, at once.`,
        refusal: refusal?.message ?? null,
        basis: await projectionBasis(db, projection),
      };
    },
    async run(services, { projection }, step) {
      const { version } = await lifecycleOf(services).endCanary(projection, step);
      return { summary: `${projection}@${version} is no longer a canary.`, version: `${projection}@${version}` };
    },
  },
  startShadow: {
    right: 'shadow',
    async preview({ db, config }, { version: id, oneOf }) {
      const { name, version } = versionName(id);
      const evolution = evolutionIn(rehearsalOf(db), config);
      const refusal = await refusalOf(() => evolution.startShadow(name, version, { oneOf }, rehearsedStep));
      return {
        of: id,
        summary: `Gateways also execute about one of ${oneOf} live queries on ${id}, and compare the responses.`,
        details: ['Clients get the responses of the active version. The results of an earlier comparison are deleted.'],
        refusal: refusal?.message ?? null,
        basis: await projectionBasis(db, name),
      };
    },
    async run({ db, config }, { version: id, oneOf }, step) {
      const { name, version } = versionName(id);
      await evolutionIn(db, config).startShadow(name, version, { oneOf }, step);
      return { summary: `${id} is compared for one of ${oneOf} queries.`, version: id };
    },
  },
  stopShadow: {
    right: 'shadow',
    async preview({ db, config }, { version: id }) {
      const { name, version } = versionName(id);
      const evolution = evolutionIn(rehearsalOf(db), config);
      const refusal = await refusalOf(() => evolution.stopShadow(name, version, rehearsedStep));
      return {
        of: id,
        summary: `Gateways no longer execute live queries on ${id}. The results stay.`,
        refusal: refusal?.message ?? null,
        basis: await projectionBasis(db, name),
      };
    },
    async run({ db, config }, { version: id }, step) {
      const { name, version } = versionName(id);
      await evolutionIn(db, config).stopShadow(name, version, step);
      return { summary: `${id} is compared no more.`, version: id };
    },
  },
};

function evolutionIn(db: Database, declarations: Config): SchemaEvolution {
  return createSchemaEvolution({ db, dbOf: async () => db, declarations });
}
