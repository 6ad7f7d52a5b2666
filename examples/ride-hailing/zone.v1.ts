import { defineProjection, many, t } from '../../src/index.ts';
import { zone } from './events.ts';

export const zoneV1 = defineProjection({
  name: 'zone',
  version: 1,
  events: zone,
  table: { zoneId: t.text().primaryKey(), borough: t.text().index(), name: t.text().index() },
  relations: { hours: many('zone_hour', { to: 'zoneId' }) },
  key: (event) => event.streamId,
  evolve: { ZoneNamed: (_, { payload }) => payload },
});
