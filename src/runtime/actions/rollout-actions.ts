import type { ReadStore } from '../../store/read-store.ts';
import { createSchemaEvolution, type SchemaEvolution } from '../activation/schema-evolution.ts';
import { versionName } from '../inspection/application.ts';
import { canaryText } from '../versions/canary-steps.ts';
import type { ActionDefinitions, ActionServices } from './action.ts';
import { refusalOf, rehearsalOf } from './rehearse.ts';
import { rehearsedLifecycleOf } from './version-actions.ts';
import { highestIfKnown, projectionBasis } from './version-basis.ts';

const rehearsedStep = { actor: 'preview', reason: 'preview' };

type Names = 'startCanary' | 'endCanary' | 'startShadow' | 'stopShadow';

export const rolloutActions: ActionDefinitions<Names> = {
  startCanary: {
    right: 'canary',
    async preview(services, { version: id, percent, header, allowBreaking }) {
      const { name, version } = versionName(id);
      const rule = { percent, header };
      const lifecycle = rehearsedLifecycleOf(services);
      const refusal = await refusalOf(() =>
        lifecycle.startCanary(name, version, rule, rehearsedStep, { allowBreaking }),
      );
      const breaking = (refusal?.fields.breaking ?? []) as readonly string[]; // `refuseBreaking` sets it
      const active = await highestIfKnown(services.db, name);
      return {
        of: id,
        summary: `${id} answers ${canaryText(rule)} of the clients, in all processes, until it is active or the canary ends.`,
        details: [...(active ? [`${name}@${active.version} answers the others.`] : []), ...breaking],
        warnings: allowBreaking ? ['Clients that use what it removes will fail while it answers them.'] : [],
        refusal: refusal?.message ?? null,
        overcomeBy: breaking.length > 0 ? ['allowBreaking'] : [],
        basis: await projectionBasis(services.db, name),
      };
    },
    async run(services, { version: id, percent, header, allowBreaking }, step) {
      const { name, version } = versionName(id);
      await services.lifecycle.startCanary(name, version, { percent, header }, step, { allowBreaking });
      return { summary: `${id} answers ${canaryText({ percent, header })} of the clients.`, version: id };
    },
  },
  endCanary: {
    right: 'canary',
    async preview(services, { projection }) {
      const refusal = await refusalOf(() => rehearsedLifecycleOf(services).endCanary(projection, rehearsedStep));
      return {
        of: projection,
        summary: `The active version of '${projection}' answers all clients again, at once.`,
        refusal: refusal?.message ?? null,
        basis: await projectionBasis(services.db, projection),
      };
    },
    async run(services, { projection }, step) {
      const { version } = await services.lifecycle.endCanary(projection, step);
      return { summary: `${projection}@${version} is no longer a canary.`, version: `${projection}@${version}` };
    },
  },
  startShadow: {
    right: 'shadow',
    async preview(services, { version: id, oneOf }) {
      const { name, version } = versionName(id);
      const evolution = evolutionOf(services, ({ db }) => rehearsalOf(db));
      const refusal = await refusalOf(() => evolution.startShadow(name, version, { oneOf }, rehearsedStep));
      return {
        of: id,
        summary: `Gateways also execute about one of ${oneOf} live queries on ${id}, and compare the responses.`,
        details: ['Clients get the responses of the active version. The results of an earlier comparison are deleted.'],
        refusal: refusal?.message ?? null,
        basis: await projectionBasis(services.db, name),
      };
    },
    async run(services, { version: id, oneOf }, step) {
      const { name, version } = versionName(id);
      await evolutionOf(services).startShadow(name, version, { oneOf }, step);
      return { summary: `${id} is compared for one of ${oneOf} queries.`, version: id };
    },
  },
  stopShadow: {
    right: 'shadow',
    async preview(services, { version: id }) {
      const { name, version } = versionName(id);
      const evolution = evolutionOf(services, ({ db }) => rehearsalOf(db));
      const refusal = await refusalOf(() => evolution.stopShadow(name, version, rehearsedStep));
      return {
        of: id,
        summary: `Gateways no longer execute live queries on ${id}. The results stay.`,
        refusal: refusal?.message ?? null,
        basis: await projectionBasis(services.db, name),
      };
    },
    async run(services, { version: id }, step) {
      const { name, version } = versionName(id);
      await evolutionOf(services).stopShadow(name, version, step);
      return { summary: `${id} is compared no more.`, version: id };
    },
  },
};

function evolutionOf({ db, find, config }: ActionServices, dbOf = ({ db }: ReadStore) => db): SchemaEvolution {
  return createSchemaEvolution({
    db,
    dbOf: async (name, version) => dbOf(await find.of(name, version)),
    declarations: config,
  });
}
