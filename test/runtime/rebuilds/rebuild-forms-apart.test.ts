import { rebuildContract } from './rebuild.contract.ts';
import { rebuildForms } from './rebuild-forms.ts';

// With read models in another database than the log.
for (const [name, form] of Object.entries(rebuildForms)) rebuildContract(name, form, 'apart');
