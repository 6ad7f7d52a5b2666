/** PostGraphile on Refold's read tables, with its own defaults for production. */
import { createServer } from 'node:http';
import { importPeer } from '../peers/installed.ts';
import { answerParent } from './answer-parent.ts';

interface PostGraphile {
  postgraphile(preset: object): {
    createServ(grafserv: unknown): { addTo(server: object): Promise<void> };
    release(): Promise<void>;
  };
}

const [, , url = ''] = process.argv;
process.env.GRAPHILE_ENV = 'production';
const { postgraphile } = await importPeer<PostGraphile>('postgraphile');
const { PostGraphileAmberPreset } = await importPeer<{ PostGraphileAmberPreset: object }>('postgraphile/presets/amber');
const { makePgService } = await importPeer<{ makePgService(options: object): object }>('postgraphile/adaptors/pg');
const { grafserv } = await importPeer<{ grafserv: unknown }>('postgraphile/grafserv/node');

const instance = postgraphile({
  extends: [PostGraphileAmberPreset],
  pgServices: [makePgService({ connectionString: url, schemas: ['read_models'] })],
  grafserv: { graphqlPath: '/graphql', graphiql: false, watch: false },
  grafast: { explain: false },
});
const server = createServer();
await instance.createServ(grafserv).addTo(server);
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  answerParent(`http://127.0.0.1:${port}`, async () => {
    server.closeAllConnections();
    await instance.release();
  });
});
